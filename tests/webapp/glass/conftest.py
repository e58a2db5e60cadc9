"""Nobody listens to the broker in these tests."""

from __future__ import annotations

import pytest

from webapp.glass import dispatch


@pytest.fixture(autouse=True)
def sent(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Ids that were given to the broker."""
    found: list[object] = []
    monkeypatch.setattr(dispatch, "send_task", lambda _, pk: found.append(pk) or True)
    return found
