"""Workers report here. Called through `webapp.lifecycle` by each worker's own pulse."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.utils import timezone

from webapp.glass.models import GlassStep
from webapp.metrics import live
from webapp.runs.models import Run
from webapp.workers_page.models import Worker


@dataclass(frozen=True)
class WorkerFacts:
    """What a worker process says of itself."""

    name: str
    """Celery's node name, such as `train@host`."""
    boot: str
    """Id of this start of the process."""
    host: str
    pid: int
    queues: tuple[str, ...]
    slots: int
    """Tasks it does at once."""
    devices: tuple[str, ...]
    """Devices in words."""
    versions: dict[str, str]
    started_at: datetime
    consuming_at: datetime | None = None
    """When its loop last turned with a live broker connection."""
    busy_run: UUID | None = None
    """A run that it trains now."""


def worker_seen(facts: WorkerFacts) -> None:
    """Store the report. Pages hear of it when a worker is new, or has become busy or free."""
    known = Worker.objects.filter(name=facts.name).first()
    values: dict[str, Any] = {
        "boot": facts.boot,
        "host": facts.host,
        "pid": facts.pid,
        "queues": list(facts.queues),
        "slots": facts.slots,
        "devices": list(facts.devices),
        "versions": facts.versions,
        "started_at": facts.started_at,
        "seen_at": timezone.now(),
        "consuming_at": facts.consuming_at,
        "stopped_at": None,
        "busy_run_id": facts.busy_run,
    }
    Worker.objects.update_or_create(name=facts.name, defaults=values)
    if known is None or _looks_different(known, facts):
        live.publish("workers", "worker", {"name": facts.name})


def _looks_different(known: Worker, facts: WorkerFacts) -> bool:
    """Whether a page that shows the old row is wrong by now."""
    is_same = known.boot == facts.boot and known.busy_run_id == facts.busy_run
    return not (is_same and known.is_alive)


def worker_gone(name: str, boot: str) -> None:
    """The worker signs off; a newer start of the same name is left alone."""
    gone = Worker.objects.filter(name=name, boot=boot, stopped_at=None)
    if gone.update(stopped_at=timezone.now(), busy_run=None):
        live.publish("workers", "worker", {"name": name})


def canary_sang(name: str) -> None:
    """Beat's small task has come through the broker to this worker."""
    Worker.objects.filter(name=name).update(canary_at=timezone.now())


def find_worker(name: str) -> Worker | None:
    """The worker of that name, or None."""
    return Worker.objects.filter(name=name).first()


def free_slots(queue: str) -> int:
    """Tasks that the workers of a queue could take now, as far as they can be heard."""
    workers = [each for each in Worker.objects.alive() if queue in each.queues and not each.is_deaf]
    names = [each.name for each in workers]
    taken = Run.objects.live().filter(lease_owner__in=names).count()
    running = GlassStep.objects.filter(state=GlassStep.State.RUNNING, worker__in=names)
    return max(0, sum(each.slots for each in workers) - taken - running.count())
