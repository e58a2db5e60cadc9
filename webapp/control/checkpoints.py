"""Checkpoint rows, from the events that tell of them. Called by `ledger`.

One row a directory: an attempt that saves at a step again writes the same directory.
"""

from __future__ import annotations

from datetime import UTC, datetime

from training_core.contract.events import CheckpointSaved
from webapp.runs.models import Attempt, Checkpoint, RunNotice


def add_checkpoint(attempt: Attempt, event: CheckpointSaved) -> None:
    """A directory is there, whole; others were removed. A later attempt's word stands."""
    at = datetime.fromtimestamp(event.t, UTC)
    rows = Checkpoint.objects.filter(run_id=attempt.run_id)
    if not rows.filter(path=event.path, attempt__gt=attempt.number).exists():
        Checkpoint.objects.update_or_create(
            run_id=attempt.run_id,
            path=event.path,
            defaults={
                "attempt": attempt.number,
                "step": event.step,
                "stage": event.stage,
                "size_bytes": event.size_bytes,
                "is_best": event.is_best,
                "pass_at_1": event.pass_at_1,
                "created_at": at,
                "removed_at": None,
            },
        )
    older = rows.filter(attempt__lte=attempt.number).exclude(path=event.path)
    if event.is_best:
        older.filter(is_best=True).update(is_best=False)
    older.filter(path__in=event.removed, removed_at=None).update(removed_at=at)


def supersede_after(attempt: Attempt, step: int, t: float) -> list[str]:
    """An attempt that starts before a checkpoint could not use it: it will be written anew.

    Returns the names of those that are gone; of a damaged one the trainer has told itself.
    """
    beyond = Checkpoint.objects.filter(
        run_id=attempt.run_id, attempt__lt=attempt.number, step__gt=step, removed_at=None
    )
    saved = beyond.filter(attempt__gt=0)  # 0 while events are read anew: not told of yet
    names = [row.path.rpartition("/")[2] for row in saved.order_by("step")]
    beyond.update(removed_at=datetime.fromtimestamp(t, UTC))
    told = RunNotice.objects.filter(
        run_id=attempt.run_id, attempt=attempt.number, code="checkpoint_damaged"
    ).values_list("message", flat=True)
    damaged = {message.partition(" ")[0] for message in told}
    return [name for name in names if name not in damaged]


def has_progressed(attempt: Attempt) -> bool:
    """Whether the attempt saved anything beyond its starting point."""
    return Checkpoint.objects.filter(
        run_id=attempt.run_id, attempt=attempt.number, step__gt=attempt.start_step or 0
    ).exists()
