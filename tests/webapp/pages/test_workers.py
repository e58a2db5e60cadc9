"""The workers page: who works, who waits and why."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from tests.webapp.stories import Story, launch
from webapp.accounts.models import User
from webapp.workers_page.models import Worker
from webapp.workers_page.overview import read_workers
from webapp.workers_page.services import WorkerFacts, worker_gone, worker_seen


def seen(name: str = "train@host-a", **changes: Any) -> None:
    now = timezone.now()
    facts: dict[str, Any] = {
        "boot": "b",
        "host": "host-a",
        "pid": 12,
        "queues": ("train",),
        "slots": 1,
        "devices": ("GPU 0: <b>H200</b>",),
        "versions": {},
        "started_at": now,
        "consuming_at": now,
    }
    worker_seen(WorkerFacts(name=name, **{**facts, **changes}))


def reasons(user: User) -> list[str]:
    return [view.reason for view in read_workers(user).waiting]


def test_an_empty_house_tells_the_command(browser: Client) -> None:
    page = browser.get("/workers/").content.decode()
    assert "No worker has reported" in page
    assert "--queues=train" in page


def test_who_waits_and_why(ada: User) -> None:
    launch(ada)
    launch(ada)
    assert reasons(ada) == ["No worker takes runs."] * 2
    seen()
    assert reasons(ada) == [
        "A slot is free; it starts within seconds.",
        "Number 2 in the queue for 1 free slots.",
    ]
    running = Story(launch(ada)).start()
    seen(busy_run=running.run.pk)
    assert reasons(ada)[0] == "The only slot is taken; it is number 1 in the queue."


@pytest.mark.parametrize(
    ("make", "state"),
    [
        (lambda: seen(), "idle"),
        (lambda: seen(consuming_at=timezone.now() - timedelta(minutes=5)), "deaf"),
        (lambda: Worker.objects.update(seen_at=timezone.now() - timedelta(minutes=5)), "silent"),
        (lambda: worker_gone("train@host-a", "b"), "stopped"),
    ],
)
def test_the_states_of_a_worker(make: Any, state: str, ada: User, browser: Client) -> None:
    seen()
    make()
    assert [view.state for view in read_workers(ada).workers] == [state]
    page = browser.get("/workers/").content.decode()
    assert f'data-state="{state}"' in page
    assert "<b>H200" not in page
    if state != "idle":
        assert "Nobody listens on this queue." in page


def test_workers_of_last_week_are_forgotten(ada: User) -> None:
    seen()
    Worker.objects.update(seen_at=timezone.now() - timedelta(days=8))
    assert read_workers(ada).is_empty


def test_a_script_gets_the_content_alone(browser: Client) -> None:
    seen()
    part = browser.get("/workers/", headers={"HX-Request": "true"}).content.decode()
    assert part.strip().startswith('<div id="workers"')
