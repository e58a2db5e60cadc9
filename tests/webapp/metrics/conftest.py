from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from training_core.contract.presets import TEACH_SMOLLM2_TO_ADD
from webapp.accounts.models import User
from webapp.metrics import pyramid, services
from webapp.runs.models import Run


@pytest.fixture
def user(db: None) -> User:
    return User.objects.create_user(username="ada", password="a-long-password")


@pytest.fixture
def make_run(user: User) -> Callable[..., Run]:
    def make(**fields: Any) -> Run:
        number = Run.objects.count() + 1
        spec = TEACH_SMOLLM2_TO_ADD.spec.model_dump(mode="json")
        given = {"number": number, "name": f"run {number}", "owner": user, "spec": spec}
        return Run.objects.create(**(given | {"spec_version": 1, "total_steps": 100} | fields))

    return make


@pytest.fixture
def run(make_run: Callable[..., Run]) -> Run:
    return make_run()


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks so small that a few hundred points build every level."""
    monkeypatch.setattr(pyramid, "_CAPACITY", (32, 16))
    monkeypatch.setattr(pyramid, "_CAPACITY_ABOVE", 16)
    monkeypatch.setattr(services, "TAIL_ROWS", 5)
