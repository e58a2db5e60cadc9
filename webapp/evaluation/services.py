"""Take evaluations into the database and hide those that a later attempt overtook.

Called by `webapp.control.record` inside its own transaction.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from uuid import UUID

from training_core.contract.events import EvaluationFinished
from webapp.evaluation.models import EvalRun


def add_evaluation(run_id: UUID, attempt: int, event: EvaluationFinished) -> None:
    """Store one evaluation; repeating it changes nothing. The newest attempt's result counts."""
    EvalRun.objects.get_or_create(
        run_id=run_id,
        attempt=attempt,
        seq=event.seq,
        defaults={
            "step": event.step,
            "stage": event.stage,
            "label": event.label,
            "title": event.title,
            "recipe": event.recipe,
            "seconds": event.seconds,
            "results": json.loads(event.model_dump_json())["results"],
            "at": datetime.fromtimestamp(event.t, UTC),
        },
    )
    # A resume from step s may repeat the evaluation that was done at s: the same weights, once.
    same = EvalRun.objects.filter(run_id=run_id, step=event.step, label=event.label)
    same.filter(attempt__lt=attempt).update(superseded=True)


def supersede_after(run_id: UUID, attempt: int, step: int) -> None:
    """Hide evaluations of earlier attempts beyond the step that `attempt` starts from."""
    EvalRun.objects.filter(run_id=run_id, attempt__lt=attempt, step__gt=step).update(
        superseded=True
    )


def delete_run(run_id: UUID) -> None:
    """Forget all evaluations of a run."""
    EvalRun.objects.filter(run_id=run_id).delete()
