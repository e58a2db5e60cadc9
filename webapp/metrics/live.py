"""Live hints: what writers publish and open pages hear.

`publish` is called by `webapp.lifecycle` and the services in the transaction that makes the news,
so a hint is seen exactly when its news can be read. `webapp.metrics.broadcast` carries hints to the
streams; `read_hints` answers who comes back with a cursor. `prune` is called by the housekeeping
task. What would surprise: ids are given before the commit, so a lower one may appear after a higher
one; readers look back a little and must not mind hearing a hint twice.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from datetime import timedelta
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection
from django.db.models import Q
from django.utils import timezone

from webapp.metrics.models import LiveEvent

CHANNEL = "temper_live"
PROJECT_TOPICS = frozenset({"runs", "datasets", "models", "glass"})
"""Topics of which everybody hears the shares of their projects."""
OF_PROJECT = "@"
CURATORS = "curators"
"""The part of a share for who may change all datasets of the project."""
KEEP = timedelta(days=7)
KEEP_ROWS = 2_000_000
LOOK_BACK = timedelta(seconds=5)
LOOK_BACK_ROWS = 200
MAX_HINTS = 256
"""More than these are not replayed: fetching everything again is cheaper."""


class Hint(NamedTuple):
    """One live event, ready to send."""

    id: int
    topic: str
    text: str
    """JSON: topic, kind, data."""


class News(NamedTuple):
    """What somebody has missed."""

    cursor: int
    """Where to go on from."""
    hints: list[Hint]
    resync: bool
    """Whether more was missed than can be told: fetch everything again."""


def run_topic(run_id: UUID) -> str:
    """Topic of everything about one run."""
    return f"run:{run_id}"


def project_topic(name: str, project_id: int | None, part: str = "") -> str:
    """One project's share of a topic that pages know as `runs`, `datasets`, `models` or `glass`.

    With a part it is what not every member may hear (`CURATORS`, `owner_part`). A stored row always
    has a project; only the type of a field with a default says otherwise.
    """
    return f"{name}{OF_PROJECT}{project_id}{':' if part else ''}{part}"


def owner_part(user_id: int) -> str:
    """The part of a share that one person alone hears."""
    return f"user{user_id}"


def publish(topic: str, kind: str, data: dict[str, Any]) -> None:
    """Tell the pages that listen to a topic; takes effect when the transaction commits.

    Raises ValueError for one of `PROJECT_TOPICS` as it is: its hints name things of one project, so
    they go to its share alone (`project_topic`).
    """
    if topic in PROJECT_TOPICS:
        raise ValueError(f"A hint on {topic} must go to a project's share: project_topic().")
    LiveEvent.objects.create(topic=topic, kind=kind, data=data)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_notify(%s, '')", [CHANNEL])


def make_hint(event_id: int, topic: str, kind: str, data: Any) -> Hint:
    """A row as a hint; pages hear a project's share under the topic's own name."""
    known = topic.partition(OF_PROJECT)[0]
    text = json.dumps({"topic": known, "kind": kind, "data": data}, separators=(",", ":"))
    return Hint(event_id, topic, text)


def read_hints(topics: Collection[str], since: int | None) -> News:
    """What was published on the topics after a cursor; without one only the newest cursor."""
    newest = _edge("-id") or _last_given()
    if since is None:
        return News(newest, [], resync=False)
    if since > newest or since < _edge("id") - 1:
        return News(newest, [], resync=True)
    late = Q(id__gt=since - LOOK_BACK_ROWS, at__gte=timezone.now() - LOOK_BACK)
    rows = LiveEvent.objects.filter(Q(id__gt=since) | late, topic__in=topics, id__lte=newest)
    found = list(rows.order_by("id").values_list("id", "topic", "kind", "data")[: MAX_HINTS + 1])
    if len(found) > MAX_HINTS:
        return News(newest, [], resync=True)
    return News(newest, [make_hint(*row) for row in found], resync=False)


def prune() -> int:
    """Drop hints that nobody can ask for any more; return how many."""
    old = Q(at__lt=timezone.now() - KEEP) | Q(id__lte=_edge("-id") - KEEP_ROWS)
    return int(LiveEvent.objects.filter(old).delete()[0])


def _edge(order: str) -> int:
    """The lowest or highest id; 0 without any."""
    return LiveEvent.objects.order_by(order).values_list("id", flat=True).first() or 0


def _last_given() -> int:
    """The id that was given last, for when no row is left."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT last_value FROM metrics_liveevent_id_seq")
        return int(cursor.fetchone()[0])
