"""`/metrics`: who may read it, and whether its figures are those of the rows."""

from __future__ import annotations

import time
from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.test import Client
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from tests.webapp.glass import steps
from tests.webapp.stories import Story, launch
from webapp.accounts.models import User
from webapp.glass import dispatch as glass_dispatch
from webapp.glass.models import GlassStep
from webapp.health import readiness
from webapp.runs.models import Attempt, Run
from webapp.webhooks import dispatch as webhook_dispatch
from webapp.webhooks.models import Delivery, Endpoint
from webapp.webhooks.outbox import note_test
from webapp.workers_page.models import Worker

TOKEN = "a-token-that-nobody-can-guess"
BEARER = {"HTTP_AUTHORIZATION": f"Bearer {TOKEN}"}


@pytest.fixture
def with_token(settings: SimpleNamespace) -> None:
    settings.METRICS_TOKEN = TOKEN


def read(client: Client) -> dict[tuple[str, tuple[str, ...]], float]:
    """(name, label values) to value."""
    answer = client.get("/metrics", **BEARER)
    assert answer.status_code == 200, answer.content
    families = text_string_to_metric_families(answer.content.decode())
    return {
        (sample.name.removeprefix("temper_"), tuple(sample.labels.values())): sample.value
        for family in families
        for sample in family.samples
    }


def test_closed_until_somebody_opens_it(client: Client) -> None:
    answer = client.get("/metrics")
    assert answer.status_code == 403
    assert b"TEMPER_METRICS_TOKEN" in answer.content


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"HTTP_AUTHORIZATION": "Bearer another"},
        {"HTTP_AUTHORIZATION": f"Basic {TOKEN}"},
        {"HTTP_AUTHORIZATION": TOKEN},
        {"HTTP_AUTHORIZATION": "Bearer ä"},
        {"QUERY_STRING": f"token={TOKEN}"},
    ],
)
def test_a_wrong_token(client: Client, with_token: None, headers: dict[str, str]) -> None:
    answer = client.get("/metrics", **headers)
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    assert b"temper_runs" not in answer.content


@pytest.mark.parametrize("address", ["127.0.0.1", "10.1.2.3", "::1", ""])
@pytest.mark.parametrize("name", ["X-Forwarded-For", "X-Real-IP", "Host"])
def test_no_address_opens_them(client: Client, with_token: None, address: str, name: str) -> None:
    """Behind a proxy everybody comes from this machine."""
    answer = client.get("/metrics", REMOTE_ADDR=address, headers={name: "127.0.0.1"})
    assert answer.status_code == 401
    assert b"temper_runs" not in answer.content


def test_runs_queues_and_their_ages(client: Client, with_token: None, ada: User) -> None:
    launch(ada)
    old = launch(ada)
    Run.objects.filter(pk=old.pk).update(queued_at=timezone.now() - timedelta(hours=1))
    Story(launch(ada)).start()
    found = read(client)
    assert found["runs", ("queued",)] == 2
    assert found["runs", ("starting",)] + found["runs", ("running",)] == 1
    assert found["runs", ("failed",)] == 0, "none is a figure too"
    assert found["queue_waiting", ("run", "train")] == 2
    assert found["queue_oldest_age_seconds", ("run", "train")] == pytest.approx(3600, abs=30)
    assert found["queue_oldest_age_seconds", ("import", "cpu")] == 0
    assert found["database_up", ()] == found["valkey_up", ()] == 1
    assert found["queue_messages", ("cpu",)] >= 0
    assert found["disk_free_bytes", ("data",)] > 0
    assert found["database_size_bytes", ()] > 1_000_000


def test_steps_under_glass(
    client: Client, with_token: None, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(glass_dispatch, "send_task", lambda *_: True)
    step = steps.ask(ada)
    GlassStep.objects.filter(pk=step.pk).update(created_at=timezone.now() - timedelta(minutes=5))
    steps.finish(steps.ask(ada, seed="1"))
    found = read(client)
    assert found["queue_waiting", ("glass", "train")] == 1
    assert found["queue_waiting", ("run", "train")] == 0
    assert found["queue_oldest_age_seconds", ("glass", "train")] == pytest.approx(300, abs=30)
    states = {state: found["glass_steps", (state,)] for state in ("waiting", "done", "failed")}
    assert states == {"waiting": 1, "done": 1, "failed": 0}


def test_messages_of_webhooks(
    client: Client, with_token: None, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits for its next try is pending; what could be sent now waits in the queue."""
    monkeypatch.setattr(webhook_dispatch, "send_task", lambda *_: True)
    on = Endpoint.objects.create(user=ada, url="https://on.example/")
    off = Endpoint.objects.create(user=ada, url="https://off.example/", disabled_at=timezone.now())
    due, later, given_up, of_the_other = (note_test(each) for each in (on, on, on, off))
    now = timezone.now()
    for delivery, changes in (
        (due, {"next_try_at": now - timedelta(minutes=5)}),
        (later, {"next_try_at": now + timedelta(hours=1)}),
        (given_up, {"state": Delivery.State.GIVEN_UP}),
        (of_the_other, {"next_try_at": now - timedelta(hours=9)}),
    ):
        Delivery.objects.filter(pk=delivery.pk).update(**changes)
    found = read(client)
    assert found["webhook_deliveries", ("pending",)] == 3
    assert found["webhook_deliveries", ("given_up",)] == 1
    assert found["webhook_deliveries", ("delivered",)] == 0
    assert found["webhooks_off", ()] == 1
    assert found["queue_waiting", ("webhook", "cpu")] == 1
    assert found["queue_oldest_age_seconds", ("webhook", "cpu")] == pytest.approx(300, abs=30)


@pytest.mark.django_db
def test_workers_by_state(client: Client, with_token: None) -> None:
    now = timezone.now()
    for name, seen, heard in (
        ("train@a", now, now),
        ("train@b", now - timedelta(minutes=9), now - timedelta(minutes=9)),
        ("cpu@a", now, now - timedelta(minutes=5)),
    ):
        Worker.objects.create(
            name=name,
            pid=1,
            slots=2,
            queues=[name.partition("@")[0]],
            started_at=now,
            seen_at=seen,
            consuming_at=heard,
        )
    gone = Worker.objects.create(name="old@c", pid=1, slots=1, started_at=now, seen_at=now)
    Worker.objects.filter(pk=gone.pk).update(stopped_at=now)
    found = read(client)
    states = {state: found["workers", (state,)] for state in ("idle", "busy", "deaf", "silent")}
    assert states == {"idle": 1, "busy": 0, "deaf": 1, "silent": 1}
    assert found["queue_slots", ("train",)] == 2
    assert found["queue_slots", ("cpu",)] == 0, "a deaf worker takes nothing"
    assert found["worker_heartbeat_age_seconds", ("train@b",)] == pytest.approx(540, abs=30)
    assert ("worker_heartbeat_age_seconds", ("old@c",)) not in found


def test_what_no_worker_has_read(client: Client, with_token: None, ada: User) -> None:
    story = Story(launch(ada), now=time.time() - 120).start()
    story.step(1)
    assert read(client)["ingest_unread_bytes", ()] == 0
    assert read(client)["ingest_lag_seconds", ()] == 0
    attempt = Attempt.objects.get(run=story.run)
    offset = attempt.ingest_offset
    story.step(2)
    size = story.run.run_dir.events_file(1).stat().st_size
    Attempt.objects.filter(pk=attempt.pk).update(ingest_offset=offset)
    found = read(client)
    assert found["ingest_unread_bytes", ()] == size - offset > 0
    assert found["ingest_lag_seconds", ()] == pytest.approx(119, abs=30)


@pytest.mark.django_db
def test_requests_are_timed_by_view(client: Client, with_token: None) -> None:
    labels = "GET", "2xx", "account_login"  # sorted by name: method, status, view
    before = read(client).get(("request_seconds_count", labels), 0)
    client.get("/accounts/login/")
    client.get("/nothing/of/the/kind/123")
    client.generic("BREW", "/accounts/login/")
    found = read(client)
    assert found["request_seconds_count", labels] == before + 1
    assert not [name for name, values in found if "123" in "".join(values)], "labels are bounded"
    assert not [1 for _, values in found if "BREW" in values]


def test_without_a_database_the_rest_is_told(
    client: Client, with_token: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = readiness.Part("database", "failed", "")
    valkey = readiness.Part("valkey", "ok", "")
    monkeypatch.setattr(readiness, "look", lambda: readiness.Readiness((part, valkey)))
    found = read(client)
    assert found["database_up", ()] == 0
    assert found["disk_free_bytes", ("data",)] > 0
    assert not [name for name, _ in found if name == "runs"]


@pytest.mark.django_db
def test_every_figure_is_documented(client: Client, with_token: None) -> None:
    from webapp.launcher.paths import REPOSITORY  # noqa: PLC0415 - only here

    page = (REPOSITORY / "docs" / "operations.md").read_text()
    text = client.get("/metrics", **BEARER).content.decode()
    names = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE temper_")}
    assert len(names) > 15
    assert [name for name in sorted(names) if f"`{name}`" not in page] == []
