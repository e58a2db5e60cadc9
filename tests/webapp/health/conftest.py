"""Probes are looked at anew by each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from webapp.health.readiness import LOOKS


@pytest.fixture(autouse=True)
def fresh_look() -> Iterator[None]:
    LOOKS.forget()
    yield
    LOOKS.forget()
