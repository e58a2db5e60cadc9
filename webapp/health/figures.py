"""The figures of an installation in Prometheus' text form: runs, queues, webhooks, workers, disk.

Called by the probe `/metrics`. They are read from the rows when somebody asks and kept nowhere, so
each web host says the same of the installation; its own requests it counts in `request_clock`.
docs/operations.md lists them all. What would surprise: a part that cannot be read leaves its
figures out instead of failing the others.
"""

from __future__ import annotations

import logging
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

import redis
from django.conf import settings
from django.db import DatabaseError, connection
from django.db.models import Count, Max, Min
from django.utils import timezone
from prometheus_client import ProcessCollector
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from training_core.contract.tasknames import QUEUE_CPU, QUEUE_TRAIN
from webapp.datasets.models import DatasetImport
from webapp.glass.models import GlassStep
from webapp.health.ingest_lag import read_backlog
from webapp.health.readiness import LOOKS
from webapp.health.request_clock import REGISTRY
from webapp.metrics.broadcast import open_streams
from webapp.runs.models import Run
from webapp.runs.status import RunState
from webapp.webhooks.models import Delivery, Endpoint
from webapp.webhooks.services import due_deliveries
from webapp.workers_page.models import Worker

logger = logging.getLogger(__name__)

BROKER_TIMEOUT_S = 2
GLASS, IMPORT = GlassStep.State, DatasetImport.State
Part = Callable[[], Iterable[Metric]]


def write_figures(accept: str) -> tuple[bytes, str]:
    """All figures as text, and its content type, in the form that the asker accepts."""
    encode, content_type = choose_encoder(accept)
    return encode(REGISTRY), content_type


class InstallationCollector(Collector):
    """Reads the installation when it is asked."""

    def collect(self) -> Iterator[Metric]:
        """Every family; those of the database only while it answers."""
        readiness = LOOKS.newest()
        has_database = readiness.part("database").state == "ok"
        yield _gauge("database_up", "1 when PostgreSQL answers.", float(has_database))
        yield _gauge(
            "valkey_up",
            "1 when Valkey answers.",
            float(readiness.part("valkey").state == "ok"),
        )
        yield _gauge("event_streams", "Event streams that are open now.", float(open_streams()))
        parts: list[Part] = [_disk, _broker]
        if has_database and readiness.part("migrations").state == "ok":
            parts += [_runs, _queues, _glass, _webhooks, _workers, _ingest, _database]
        for part in parts:
            try:
                yield from tuple(part())
            except (DatabaseError, redis.RedisError, OSError) as error:
                logger.warning("No figures of %s: %s", part.__name__.strip("_"), error)

    def describe(self) -> Iterable[Metric]:
        """Nothing is read when the collector is registered."""
        return ()


def _runs() -> Iterator[Metric]:
    """Runs by state; a state without any is 0, so that an alarm can tell 0 from unknown."""
    counted = Run.objects.unarchived().order_by().values("state").annotate(n=Count("pk"))
    found = {str(row["state"]): row["n"] for row in counted}
    values = [((state.value,), found.get(state.value, 0)) for state in RunState]
    yield _gauges("runs", "Runs that are not archived, by state.", ("state",), values)


def _queues() -> Iterator[Metric]:
    """What waits in the rows, which are the truth, and for how long."""
    waiting = (
        (QUEUE_TRAIN, "run", Run.objects.filter(state=RunState.QUEUED), "queued_at"),
        (QUEUE_TRAIN, "glass", GlassStep.objects.filter(state=GLASS.WAITING), "created_at"),
        (QUEUE_CPU, "import", DatasetImport.objects.filter(state=IMPORT.QUEUED), "created_at"),
        (QUEUE_CPU, "webhook", due_deliveries(), "next_try_at"),
    )
    rows = [
        ((queue, kind), found.order_by().aggregate(n=Count("pk"), t=Min(since)))
        for queue, kind, found, since in waiting
    ]
    yield _gauges(
        "queue_waiting",
        "Work that waits, by queue and kind.",
        ("queue", "kind"),
        [(labels, row["n"]) for labels, row in rows],
    )
    yield _gauges(
        "queue_oldest_age_seconds",
        "How long the oldest of it has waited; 0 when none waits.",
        ("queue", "kind"),
        [(labels, _age(row["t"])) for labels, row in rows],
    )


def _glass() -> Iterator[Metric]:
    """Steps under glass and tryouts; those that ended are deleted after 30 days."""
    counted = GlassStep.objects.order_by().values("state").annotate(n=Count("pk"))
    found = {str(row["state"]): row["n"] for row in counted}
    values = [((state.value,), found.get(state.value, 0)) for state in GLASS]
    yield _gauges("glass_steps", "Steps under glass and tryouts, by state.", ("state",), values)


def _webhooks() -> Iterator[Metric]:
    """Messages of webhooks; those that are settled are deleted after 30 days."""
    counted = Delivery.objects.order_by().values("state").annotate(n=Count("pk"))
    found = {str(row["state"]): row["n"] for row in counted}
    values = [((state.value,), found.get(state.value, 0)) for state in Delivery.State]
    yield _gauges("webhook_deliveries", "Messages of webhooks, by state.", ("state",), values)
    off = Endpoint.objects.exclude(disabled_at=None).count()
    yield _gauge("webhooks_off", "Webhooks that are switched off.", off)


def _workers() -> Iterator[Metric]:
    """Heartbeats; workers that signed off are not counted."""
    workers = list(Worker.objects.filter(stopped_at=None))
    states = Counter(_state_of(worker) for worker in workers)
    yield _gauges(
        "workers",
        "Worker processes, by state.",
        ("state",),
        [((state,), states[state]) for state in ("idle", "busy", "deaf", "silent")],
    )
    yield _gauges(
        "worker_heartbeat_age_seconds",
        "Seconds since a worker last reported itself.",
        ("worker",),
        [((worker.name,), _age(worker.seen_at)) for worker in workers],
    )
    slots: Counter[str] = Counter({QUEUE_TRAIN: 0, QUEUE_CPU: 0})
    for worker in workers:
        if worker.is_alive and not worker.is_deaf:
            slots.update(dict.fromkeys(worker.queues, worker.slots))
    yield _gauges(
        "queue_slots",
        "Tasks that workers which can be heard do at once.",
        ("queue",),
        [((queue,), count) for queue, count in sorted(slots.items())],
    )
    sung = Worker.objects.aggregate(t=Max("canary_at"))["t"]
    if sung is not None:
        words = "Seconds since a message of beat last came through the broker to a worker."
        yield _gauge("canary_age_seconds", words, _age(sung))


def _ingest() -> Iterator[Metric]:
    """What trainers have written and no worker has read."""
    backlog = read_backlog()
    words = "Bytes of events that trainers have written and that are no rows yet."
    yield _gauge("ingest_unread_bytes", words, backlog.unread_bytes)
    words = "Age of the oldest such event; 0 when there is none."
    yield _gauge("ingest_lag_seconds", words, backlog.oldest_s)


def _database() -> Iterator[Metric]:
    """Its size."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_database_size(current_database())")
        [size] = cursor.fetchone()
    yield _gauge("database_size_bytes", "Size of the database.", size)


def _broker() -> Iterator[Metric]:
    """Messages that no worker has taken. A message is a hint: the rows are what waits."""
    with redis.Redis.from_url(settings.REDIS_URL, socket_timeout=BROKER_TIMEOUT_S) as client:
        lengths = [((queue,), _length(client, queue)) for queue in (QUEUE_TRAIN, QUEUE_CPU)]
    yield _gauges("queue_messages", "Messages in the broker.", ("queue",), lengths)


def _disk() -> Iterator[Metric]:
    """The disks of state."""
    usage = {
        name: shutil.disk_usage(folder)
        for name, folder in (("data", settings.DATA_DIR), ("uploads", settings.UPLOADS_DIR))
    }
    for figure, words in (("free", "Bytes free"), ("total", "Size in bytes")):
        values = [((name,), float(getattr(facts, figure))) for name, facts in usage.items()]
        yield _gauges(f"disk_{figure}_bytes", f"{words} of the disk.", ("folder",), values)


def _state_of(worker: Worker) -> str:
    """In one word, as on the workers page."""
    if not worker.is_alive:
        return "silent"
    if worker.is_deaf:
        return "deaf"
    return "busy" if worker.busy_run_id else "idle"


def _length(client: redis.Redis, queue: str) -> float:
    """Messages in one queue of the broker."""
    length: Any = client.llen(queue)
    return float(length)


def _age(moment: datetime | None) -> float:
    """Seconds since a moment; 0 for none."""
    return max(0.0, (timezone.now() - moment).total_seconds()) if moment is not None else 0.0


def _gauge(name: str, words: str, value: float) -> Metric:
    """A family with one value."""
    return GaugeMetricFamily(f"temper_{name}", words, value=value)


def _gauges(
    name: str, words: str, labels: Sequence[str], values: Iterable[tuple[tuple[str, ...], float]]
) -> Metric:
    """A family with a value for each label."""
    family = GaugeMetricFamily(f"temper_{name}", words, labels=labels)
    for label, value in values:
        family.add_metric(label, value)
    return family


REGISTRY.register(InstallationCollector())
ProcessCollector(registry=REGISTRY)
