"""Two people steer one run at the same moment: the second is told, and nothing breaks."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from tests.webapp.stories import launch
from webapp.accounts.models import User
from webapp.runs.models import Run
from webapp.runs.moves import MoveLost
from webapp.runs.steering import COMMANDS
from webapp.runs.views import control as control_view

HTMX = {"HX-Request": "true"}


def steer(browser: Client, run: Run, command: str, **headers: Any) -> Any:
    address = reverse("runs:control", args=[run.number, command])
    return browser.post(address, {"name": run.name}, **headers)


@pytest.mark.parametrize("fragment", [{}, {"headers": HTMX}], ids=["page", "script"])
@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_a_run_that_is_deleted_meanwhile_is_a_404(
    command: str,
    fragment: dict[str, Any],
    browser: Client,
    ada: User,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = launch(ada, "Mine")
    find = control_view.get_controllable_run_for_user

    def find_and_lose(user: User, number: int) -> Run:
        found = find(user, number)
        Run.objects.filter(pk=found.pk).delete()
        return found

    monkeypatch.setattr(control_view, "get_controllable_run_for_user", find_and_lose)
    assert steer(browser, run, command, **fragment).status_code == 404


def test_a_run_that_is_deleted_after_the_deed_is_a_404(
    browser: Client, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = launch(ada, "Mine")

    def do(found: Run, _: User) -> None:
        Run.objects.filter(pk=found.pk).delete()

    monkeypatch.setitem(COMMANDS, "stop", dataclasses.replace(COMMANDS["stop"], do=do))
    assert steer(browser, run, "stop", headers=HTMX).status_code == 404


def test_a_move_that_is_lost_is_a_conflict(
    browser: Client, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = launch(ada, "Mine")

    def do(*_: object) -> None:
        raise MoveLost("somebody else was first")

    monkeypatch.setitem(COMMANDS, "stop", dataclasses.replace(COMMANDS["stop"], do=do))
    answer = steer(browser, run, "stop", headers=HTMX)
    assert answer.status_code == 409
    assert "Somebody else has just changed this run" in answer.headers["HX-Trigger"]
    page = browser.get(steer(browser, run, "stop").headers["Location"]).content.decode()
    assert "Somebody else has just changed this run" in page
