"""Tell the workers that a run waits. Called by `services`, by the reaper and after a hand-back.

The row in state `queued` is the truth; the message only saves the worker from looking. When the
broker does not take it, the run stays queued and the reaper sends it again.
"""

from __future__ import annotations

from functools import partial
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from training_core.contract.tasknames import TRAIN_RUN
from webapp.broker import send_task
from webapp.runs.models import Run
from webapp.runs.status import RunState


def dispatch_run_on_commit(run_id: UUID) -> None:
    """Send the run's id once the surrounding transaction is on disk, and not if it fails."""
    transaction.on_commit(partial(dispatch_run, run_id), robust=True)


def dispatch_run(run_id: UUID) -> bool:
    """Send the run's id now; whether the broker took it."""
    taken = send_task(TRAIN_RUN, run_id)
    if taken:
        Run.objects.filter(pk=run_id, state=RunState.QUEUED).update(sent_at=timezone.now())
    return taken
