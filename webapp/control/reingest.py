"""Build all index rows of a run anew from its directory.

Called by `manage.py reingest NUMBER`. Gives the rows that live ingestion gave: the same events in
the same order through the same ledger. What the directory does not know stays as it is: state,
log of control, wishes, which worker had which attempt. One transaction: pages see the old rows or
the new ones.
"""

from __future__ import annotations

from uuid import UUID

from django.db import transaction

from webapp.control.attempts import read_end, write_verdict
from webapp.control.batches import read_batch
from webapp.control.record import replay_events
from webapp.evaluation import services as evaluations
from webapp.metrics import services as metrics
from webapp.rollouts import services as rollouts
from webapp.runs.models import Attempt, Checkpoint, Run, RunNotice
from webapp.runs.moves import announce_state, lock_run


@transaction.atomic
def reingest(run_id: UUID) -> int:
    """Forget and rebuild; the number of attempts that were read. Raises Run.DoesNotExist."""
    run = lock_run(run_id)
    numbers = run.run_dir.attempts()
    _forget(run)
    for number in numbers:
        attempt = _fresh_attempt(run, number)
        path = run.run_dir.events_file(number)
        batch = read_batch(path, 0)
        while not batch.is_empty:
            replay_events(run_id, number, batch)
            batch = read_batch(path, batch.offset)
        attempt.refresh_from_db()
        if end := read_end(run.run_dir, number):
            write_verdict(attempt, *end)
    _tidy(run)
    return len(numbers)


def _forget(run: Run) -> None:
    """Drop what comes from the directory. Checkpoint rows stay: forks point at them."""
    metrics.delete_run(run.pk)
    rollouts.delete_run(run.pk)
    evaluations.delete_run(run.pk)
    RunNotice.objects.filter(run=run).delete()
    Checkpoint.objects.filter(run=run).update(attempt=0, is_best=False)
    spec = run.read_spec()
    Run.objects.filter(pk=run.pk).update(
        step=run.parent_checkpoint.step if run.parent_checkpoint else 0,
        total_steps=spec.total_steps,
        stage="",
        phase=None,
        latest={},
        pace=None,
        eta_s=None,
    )


def _fresh_attempt(run: Run, number: int) -> Attempt:
    """The attempt's row as it was before its first event."""
    attempt, _ = Attempt.objects.get_or_create(run=run, number=number)
    attempt.start_step = None
    attempt.last_step = 0
    attempt.device, attempt.facts = "", {}
    attempt.outcome = attempt.cause = attempt.message = attempt.advice = ""
    attempt.retryable = False
    attempt.ended_at = None
    attempt.ingest_offset = attempt.last_seq = 0
    attempt.save()
    return attempt


def _tidy(run: Run) -> None:
    """Checkpoints that no event speaks of any more; columns that only a live run has."""
    Checkpoint.objects.filter(run=run, attempt=0).delete()
    run.refresh_from_db()
    if not run.is_live:
        Run.objects.filter(pk=run.pk).update(phase=None, eta_s=None)
    announce_state(run)
