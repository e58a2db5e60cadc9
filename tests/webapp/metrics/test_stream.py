from __future__ import annotations

import asyncio
import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection, transaction
from django.test import Client

from tests.webapp.metrics.asgi_server import RunningServer, serve
from webapp.accounts.models import Project, User
from webapp.metrics import broadcast, live
from webapp.metrics.models import LiveEvent
from webapp.metrics.views import stream as view
from webapp.runs.models import Run

pytestmark = pytest.mark.django_db(transaction=True)


def publish_runs(kind: str, data: dict[str, Any]) -> None:
    """A hint on the runs of the main project."""
    live.publish(live.project_topic("runs", Project.objects.main().pk), kind, data)


class Listener:
    """One client of the stream, reading what it is sent."""

    def __init__(self, server: RunningServer, cookie: str, topics: str, last: str = "") -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
        headers = {"Cookie": f"sessionid={cookie}"} | ({"Last-Event-ID": last} if last else {})
        self.connection.request("GET", f"/live/events?topics={topics}", headers=headers)
        self.response = self.connection.getresponse()

    def next(self) -> tuple[str, int, Any]:
        """(event, id, data) of the next message."""
        fields: dict[str, str] = {}
        give_up = time.monotonic() + 10
        while True:
            line = self.response.readline().decode()
            if line == "":
                raise EOFError
            if time.monotonic() > give_up:
                raise TimeoutError
            name, _, value = line.rstrip("\n").partition(": ")
            if line != "\n" and name:
                fields[name] = value
            elif line == "\n" and "data" in fields:
                return fields["event"], int(fields["id"]), json.loads(fields["data"])
            elif line == "\n":
                fields.clear()

    def close(self) -> None:
        self.response.close()
        self.connection.close()


@pytest.fixture
def server() -> Iterator[RunningServer]:
    with serve() as running:
        yield running


@pytest.fixture
def cookie(user: User) -> str:
    client = Client()
    client.force_login(user)
    return client.cookies["sessionid"].value


@pytest.fixture
def listen(server: RunningServer, cookie: str) -> Iterator[Callable[..., Listener]]:
    opened = []

    def start(topics: str = "runs", last: str = "") -> Listener:
        opened.append(Listener(server, cookie, topics, last))
        return opened[-1]

    yield start
    for listener in opened:
        listener.close()


def eventually(check: Callable[[], bool], seconds: float = 10.0) -> None:
    give_up = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < give_up
        time.sleep(0.02)


def test_a_hint_arrives_when_its_transaction_commits(
    listen: Callable[..., Listener], run: Run
) -> None:
    mine, others = listen(f"runs,run:{run.pk}"), listen("workers")
    assert mine.next()[0] == others.next()[0] == "hello"
    assert mine.response.headers["Content-Type"] == "text/event-stream"
    assert mine.response.headers["X-Accel-Buffering"] == "no"
    with transaction.atomic():
        live.publish(f"run:{run.pk}", "metric", {"step": 3})
        live.publish("workers", "worker", {"name": "w"})
    assert mine.next()[2] == {"topic": f"run:{run.pk}", "kind": "metric", "data": {"step": 3}}
    assert others.next()[2]["topic"] == "workers"


def test_what_was_missed_is_replayed_from_the_last_event_id(
    listen: Callable[..., Listener], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broadcast, "GAP_S", 0.0)  # ids that earlier tests took never come
    first = listen()
    first.next()
    publish_runs("state", {"n": 1})
    _, last, _ = first.next()
    first.close()
    LiveEvent.objects.update(at="2026-01-01T00:00:00Z")  # too old to be looked back at
    publish_runs("state", {"n": 2})
    live.publish("workers", "worker", {"n": 3})
    publish_runs("state", {"n": 4})
    again = listen(last=str(last))
    assert [again.next()[0] for _ in "h"] == ["hello"]
    assert [again.next()[2]["data"]["n"] for _ in "24"] == [2, 4]


@pytest.mark.parametrize("last", ["too old", "from another database", "too many"])
def test_what_cannot_be_replayed_asks_for_everything(
    listen: Callable[..., Listener], monkeypatch: pytest.MonkeyPatch, last: str
) -> None:
    for n in range(8):
        publish_runs("state", {"n": n})
    newest = LiveEvent.objects.latest("id").id
    if last == "too old":
        LiveEvent.objects.filter(id__lt=newest - 2).delete()
    monkeypatch.setattr(live, "MAX_HINTS", 5)
    cursor = newest + 50 if last == "from another database" else newest - 7
    late = listen(last=str(cursor))
    assert [late.next()[:2] for _ in "hr"] == [("hello", newest), ("resync", newest)]


def test_a_hint_committed_after_a_later_one_is_not_lost(listen: Callable[..., Listener]) -> None:
    listener = listen()
    listener.next()
    with transaction.atomic():
        publish_runs("state", {"n": 1})

        def overtake() -> None:
            publish_runs("state", {"n": 2})
            connection.close()

        thread = threading.Thread(target=overtake)
        thread.start()
        thread.join()
        _, cursor, data = listener.next()
        assert data["data"]["n"] == 2
    assert listener.next()[2]["data"]["n"] == 1
    assert cursor < LiveEvent.objects.get(data__n=1).id  # else a reconnect would skip it


def test_fifty_clients_come_and_go_and_leave_nothing(
    server: RunningServer, cookie: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broadcast, "STREAMS_PER_SESSION", 100)
    warm = Listener(server, cookie, "runs")
    warm.next()
    warm.close()
    eventually(lambda: "live-hints" not in server.task_names())
    tasks, backends = len(server.task_names()), count_backends()
    clients = [Listener(server, cookie, "runs") for _ in range(50)]
    for client in clients:
        assert client.next()[0] == "hello"
    publish_runs("state", {})
    for client in clients:
        assert client.next()[0] == "message"
    assert server.task_names().count("live-hints") == 1
    assert count_backends() <= backends + 13  # the listener's and the pool's, not fifty
    for client in clients:
        client.close()
    eventually(lambda: len(server.task_names()) <= tasks)
    eventually(lambda: count_backends() <= backends + 12)
    assert not broadcast._hubs[server.loop].by_session


def count_backends() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
        return int(cursor.fetchone()[0])


def test_a_client_that_does_not_read_loses_its_backlog_not_the_servers_memory() -> None:
    async def main() -> None:
        stream = broadcast.Stream(frozenset({"runs"}), "s")
        for i in range(broadcast.BACKLOG + 3):
            stream.push(live.make_hint(i, "runs", "state", {}))
        assert len(stream.hints) == 3
        assert view._drain(stream, 9).startswith("id: 9\nevent: resync\n")
        assert view._drain(stream, 9) == ""

    asyncio.run(main())


def test_a_stream_ends_when_its_session_does(
    listen: Callable[..., Listener], user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view, "HEARTBEAT_S", 0.05)
    monkeypatch.setattr(view, "CHECK_S", 0.1)
    listener = listen()
    listener.next()
    time.sleep(0.3)
    publish_runs("state", {})
    assert listener.next()[0] == "message"
    user.is_active = False
    user.save()
    assert listener.next()[::2] == ("bye", {"reason": "signed_out"})
    with pytest.raises(EOFError):
        listener.next()


def test_a_stream_ends_without_farewell_when_its_run_is_deleted(
    listen: Callable[..., Listener], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view, "HEARTBEAT_S", 0.05)
    monkeypatch.setattr(view, "CHECK_S", 0.1)
    topics = f"runs,run:{run.pk}"
    listener = listen(topics)
    listener.next()
    run.delete()
    with pytest.raises(EOFError):
        listener.next()
    assert listen(topics).next()[0] == "hello"


def test_the_seventh_stream_of_a_session_ends_the_first(listen: Callable[..., Listener]) -> None:
    first = listen()
    assert first.next()[0] == "hello"
    rest = [listen() for _ in range(broadcast.STREAMS_PER_SESSION)]
    assert [listener.next()[0] for listener in rest] == ["hello"] * len(rest)
    with pytest.raises(EOFError):
        first.next()


def test_a_stream_goes_on_after_the_database_dropped_its_connection(
    listen: Callable[..., Listener], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broadcast, "RETRY_S", 0.1)
    listener = listen()
    listener.next()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE query LIKE %s AND pid <> pg_backend_pid()",
            ["%metrics_liveevent WHERE id >%"],
        )
    publish_runs("state", {"n": 1})
    assert listener.next()[2]["data"]["n"] == 1


def test_polling_tells_the_same(client: Client, user: User) -> None:
    client.force_login(user)
    start = client.get("/live/news?topics=runs").json()
    assert start["hints"] == []
    publish_runs("state", {"n": 1})
    news = client.get(f"/live/news?topics=runs&since={start['cursor']}").json()
    assert [json.loads(text)["data"]["n"] for text in news["hints"]] == [1]
    assert news["cursor"] > start["cursor"]
    assert client.get("/live/news?topics=runs&since=999999").json()["resync"]


def test_a_deleted_run_among_the_topics_does_not_end_the_others(
    listen: Callable[..., Listener], run: Run
) -> None:
    listener = listen(f"runs,run:{uuid4()},run:{run.pk}")
    assert listener.next()[0] == "hello"
    live.publish(f"run:{run.pk}", "state", {})
    assert listener.next()[2]["topic"] == f"run:{run.pk}"


@pytest.mark.parametrize("topics", ["", "everything", "run:", "run:x", "run"])
def test_unknown_topics_are_refused(client: Client, user: User, topics: str) -> None:
    client.force_login(user)
    response = client.get(f"/live/news?topics={topics}")
    assert response.status_code == 400
    assert response.json()["error"]["field"] == "topics"


def test_old_hints_are_dropped(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(5):
        publish_runs("state", {})
    ids = list(LiveEvent.objects.values_list("id", flat=True))
    LiveEvent.objects.filter(id=ids[0]).update(at="2020-01-01T00:00:00Z")
    assert live.prune() == 1
    monkeypatch.setattr(live, "KEEP_ROWS", 2)
    assert live.prune() == 2
    assert list(LiveEvent.objects.values_list("id", flat=True)) == ids[3:]
