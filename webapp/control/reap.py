"""What beat has done every few seconds so that nothing stays stuck.

Called by the task `reap_runs` through `webapp.lifecycle`. Any number may run at once: each run is
judged again under its lock.

1. A live run whose lease ran out is lost, or ends as its owner wished.
2. A lost run that nobody revived is queued again, or fails when it has had its attempts.
3. A queued run gets a new message when some worker is free to take it: a message may be lost with
   the broker, or wait in a worker that cannot hear. Nothing is sent while all slots are taken, so
   messages never pile up.
4. Imports and exports that are stuck are sent again, exports that had their time and old hints
   are dropped.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from datetime import timedelta
from uuid import UUID

from django.db import Error as DatabaseError
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from training_core.contract.tasknames import QUEUE_TRAIN
from webapp.control.attempts import WORKER_LOST, close_attempt, close_open_attempts
from webapp.control.catch_up import catch_up
from webapp.control.claims import LEASE
from webapp.control.finish import retry_delay, settle_run
from webapp.datasets.services import requeue_silent_imports
from webapp.glass.claims import requeue_silent_glass
from webapp.glass.services import prune_glass
from webapp.metrics import live
from webapp.registry.services import tend_exports
from webapp.runs import status
from webapp.runs.dispatch import dispatch_run
from webapp.runs.models import Attempt, Run
from webapp.runs.moves import lock_run, move
from webapp.runs.status import Actor, RunState
from webapp.workers_page.services import free_slots

logger = logging.getLogger(__name__)

LOST_GRACE = timedelta(seconds=15)
"""How long a lost run may be revived before another worker gets it."""
SEND_AGAIN_AFTER = timedelta(seconds=15)
"""A message that a free worker has not taken after this long is taken for lost."""


def reap() -> None:
    """One round."""
    expired = Run.objects.live().filter(lease_until__lt=Now())
    _each(_lose_expired, expired.values_list("pk", flat=True))
    lost = Run.objects.filter(state=RunState.LOST, lease_until__lt=Now() - LOST_GRACE)
    _each(requeue_lost, lost.values_list("pk", flat=True))
    _each(_close_forsaken, _forsaken().values_list("run_id", flat=True))
    send_waiting_runs()
    requeue_silent_imports()
    requeue_silent_glass(free_slots(QUEUE_TRAIN))
    prune_glass()
    tend_exports()
    live.prune()


def disown_predecessor(worker: str, boot: str) -> None:
    """A worker has started anew: what its former self had is dead, lease or no lease."""
    orphans = Attempt.objects.filter(worker=worker, ended_at=None).exclude(boot=boot)

    def free(run_id: UUID) -> None:
        """Lose it at once, then queue it at once."""
        catch_up(run_id)
        with transaction.atomic():
            run = lock_run(run_id)
            if run.is_live and run.lease_owner == worker:
                _lose(run)
        requeue_lost(run_id)

    _each(free, orphans.values_list("run_id", flat=True))


def requeue_lost(run_id: UUID) -> None:
    """Nobody revived it: index what its trainer left, then another attempt, if it has one."""
    catch_up(run_id)
    with transaction.atomic():
        run = lock_run(run_id)
        if run.state != RunState.LOST:
            return
        _settle_newest_attempt(run)


def _each(step: Callable[[UUID], None], run_ids: Iterable[UUID]) -> None:
    """Do a step for each run; a fault in one must not keep the others waiting."""
    for run_id in tuple(run_ids):
        try:
            step(run_id)
        except DatabaseError:
            raise
        except Exception:
            logger.exception("The reaper could not see to run %s", run_id)


def _lose_expired(run_id: UUID) -> None:
    """Judge a run again under its lock: its worker may have been heard of meanwhile."""
    catch_up(run_id)
    with transaction.atomic():
        run = lock_run(run_id)
        if run.is_live and Run.objects.filter(pk=run_id, lease_until__lt=Now()).exists():
            _lose(run)


def _lose(run: Run) -> None:
    """Its worker is silent: lost, or ended as its owner wished. What it left was read before."""
    if run.state in {RunState.STOPPING, RunState.PAUSING}:
        _settle_newest_attempt(run)
        return
    heard = f"{run.heartbeat_at:%H:%M:%S} UTC" if run.heartbeat_at else "its claim"
    message = f"The worker {run.lease_owner} has not been heard of since {heard}."
    move(
        run,
        RunState.LOST,
        actor=Actor.REAPER,
        who="reaper",
        cause="worker_lost",
        message=message,
    )


def _forsaken() -> QuerySet[Attempt]:
    """Attempts that nobody closed, of runs that were stopped while they were lost."""
    silent = Attempt.objects.filter(ended_at=None, run__heartbeat_at__lt=Now() - LEASE - LOST_GRACE)
    return silent.exclude(run__state__in=status.LIVE | {RunState.LOST})


@transaction.atomic
def _close_forsaken(run_id: UUID) -> None:
    """Close them in row and directory."""
    close_open_attempts(lock_run(run_id))


def send_waiting_runs() -> int:
    """Send queued runs again that a free worker has not taken; how many were sent."""
    free = free_slots(QUEUE_TRAIN)
    sent = 0
    for run in Run.objects.filter(state=RunState.QUEUED).order_by("queued_at"):
        if sent >= free:
            break
        if _is_due(run) and dispatch_run(run.pk):
            sent += 1
    return sent


def _is_due(run: Run) -> bool:
    """Whether its message, if it has one, must be taken for lost."""
    now = timezone.now()
    if run.sent_at is not None:
        return now - run.sent_at > SEND_AGAIN_AFTER
    waits = max(retry_delay(run.idle_attempts), timedelta(seconds=2))
    return run.queued_at is None or now - run.queued_at > waits


def _settle_newest_attempt(run: Run) -> None:
    """Close the attempt of a worker that cannot do it any more, and say what becomes of the run."""
    attempt = Attempt.objects.select_for_update(no_key=True).get(run=run, number=run.attempt)
    verdict = close_attempt(attempt, WORKER_LOST)
    settle_run(run, attempt, verdict, actor=Actor.REAPER, who="reaper")
