"""Who works, who waits, and why: what the workers page says.

Called by its view. Reads rows only; the broker is not asked, since the rows are the truth.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_lazy, ngettext

from training_core.contract.tasknames import QUEUE_CPU, QUEUE_TRAIN
from webapp.accounts.models import User
from webapp.datasets.models import DatasetImport
from webapp.glass.models import GlassStep
from webapp.runs.models import Run, RunQuerySet
from webapp.runs.status import RunState
from webapp.workers_page.models import SILENT_AFTER, Worker

FORGOTTEN_AFTER = timedelta(days=1)
LISTED = 100
OTHERS = gettext_lazy("Has a run of a project that you are not in.")
GLASS_WORDS: dict[GlassStep.Kind, str | Promise] = {
    GlassStep.Kind.STEP: gettext_lazy("Takes a step under glass."),
    GlassStep.Kind.TRYOUT: gettext_lazy("Has a base model try a dataset."),
}
QUEUE_WORDS: dict[str, str | Promise] = {
    QUEUE_TRAIN: gettext_lazy(
        "Runs, steps under glass, tryouts; each takes one slot until it ends."
    ),
    QUEUE_CPU: gettext_lazy("Short work: imports, housekeeping."),
}


class WorkerView(NamedTuple):
    """One worker process."""

    worker: Worker
    state: str
    """idle, busy, silent, deaf or stopped."""
    words: str
    """What that means, where it needs saying."""
    run: Run | None


class QueueView(NamedTuple):
    """One queue."""

    name: str
    words: str
    workers: int
    slots: int
    busy: int
    waiting: int


class WaitingView(NamedTuple):
    """A run that waits."""

    run: Run
    place: int
    reason: str


class WorkersView(NamedTuple):
    """The page."""

    workers: list[WorkerView]
    queues: list[QueueView]
    waiting: list[WaitingView]
    waiting_total: int

    @property
    def is_empty(self) -> bool:
        """Whether nobody has ever reported, or not for a day."""
        return not self.workers


def read_workers(user: User) -> WorkersView:
    """Everything that the page shows."""
    since = timezone.now() - FORGOTTEN_AFTER
    workers = [
        _worker_view(worker)
        for worker in Worker.objects.filter(seen_at__gte=since).select_related("busy_run")
    ]
    runs = Run.objects.visible_to(user)
    workers = _with_glass(_without_others(workers, runs))
    steps = GlassStep.objects.all()
    busy = Run.objects.live().count() + steps.filter(state=GlassStep.State.RUNNING).count()
    queue = Run.objects.filter(state=RunState.QUEUED).order_by("queued_at")
    places = {pk: place for place, pk in enumerate(queue.values_list("pk", flat=True), start=1)}
    imports = DatasetImport.objects.filter(state=DatasetImport.State.QUEUED).count()
    queues = [
        _queue_view(QUEUE_TRAIN, workers, busy=busy, waiting=len(places)),
        _queue_view(QUEUE_CPU, workers, busy=0, waiting=imports),
    ]
    queued = runs.filter(pk__in=places).select_related("owner").order_by("queued_at")
    waiting = [
        WaitingView(run, places[run.pk], _reason(places[run.pk], queues[0], workers))
        for run in queued.defer("spec")[:LISTED]
    ]
    return WorkersView(workers, queues, waiting, queued.count())


def _without_others(workers: Sequence[WorkerView], runs: RunQuerySet) -> list[WorkerView]:
    """The workers; runs of projects that one may not see are not named."""
    busy = [view.run.pk for view in workers if view.run is not None]
    seen = set(runs.filter(pk__in=busy).values_list("pk", flat=True))
    return [
        view
        if view.run is None or view.run.pk in seen
        else view._replace(run=None, words=f"{view.words} {OTHERS}".strip())
        for view in workers
    ]


def _with_glass(workers: Sequence[WorkerView]) -> list[WorkerView]:
    """The workers; one that takes a step under glass is not idle."""
    running = GlassStep.objects.filter(state=GlassStep.State.RUNNING)
    takers = dict(running.values_list("worker", "kind"))
    return [
        view._replace(state="busy", words=_glass_words(takers[view.worker.name]))
        if view.state == "idle" and view.worker.name in takers
        else view
        for view in workers
    ]


def _glass_words(kind: str) -> str:
    """What a worker without a run does."""
    return str(GLASS_WORDS[GlassStep.Kind(kind)])


def _worker_view(worker: Worker) -> WorkerView:
    """A worker's state in a word."""
    run = worker.busy_run
    if worker.stopped_at is not None:
        return WorkerView(worker, "stopped", gettext("Signed off."), None)
    if not worker.is_alive:
        words = gettext("No word for more than %(seconds)s s; its runs go to others.")
        seconds = int(SILENT_AFTER.total_seconds())
        return WorkerView(worker, "silent", words % {"seconds": seconds}, run)
    if worker.is_deaf:
        words = gettext("Lives, but hears nothing from the broker.")
        return WorkerView(worker, "deaf", words, run)
    return WorkerView(worker, "busy" if run else "idle", "", run)


def _queue_view(name: str, workers: Sequence[WorkerView], *, busy: int, waiting: int) -> QueueView:
    """The sums of one queue over the workers that can be counted on."""
    able = [view for view in workers if view.state in {"idle", "busy"}]
    listening = [view.worker for view in able if name in view.worker.queues]
    slots = sum(worker.slots for worker in listening)
    return QueueView(name, str(QUEUE_WORDS[name]), len(listening), slots, busy, waiting)


def _reason(place: int, queue: QueueView, workers: Sequence[WorkerView]) -> str:
    """Why a run waits."""
    if not queue.slots:
        deaf = any(view.state == "deaf" for view in workers)
        if deaf:
            return gettext("The only workers hear nothing from the broker.")
        return gettext("No worker takes runs.")
    free = queue.slots - queue.busy
    if free <= 0:
        words = ngettext(
            "The only slot is taken; it is number %(place)s in the queue.",
            "All %(slots)s slots are taken; it is number %(place)s in the queue.",
            queue.slots,
        )
        return words % {"slots": queue.slots, "place": place}
    if place <= free:
        return gettext("A slot is free; it starts within seconds.")
    words = gettext("Number %(place)s in the queue for %(free)s free slots.")
    return words % {"place": place, "free": free}
