"""What workers do with steps under glass: claim, tend, finish. Called through `webapp.lifecycle`.

A claim counts the step's attempts up, and everything its holder says later is guarded by that
number: who was given up for dead and comes back says nothing any more.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from pydantic import ValidationError

from training_core.contract.glass import GlassDir, GlassEnd, GlassResult, GlassSpec
from training_core.contract.strict import WireModel
from training_core.contract.tryout import TryoutResult, TryoutSpec
from webapp.glass.dispatch import send_glass
from webapp.glass.hints import tell
from webapp.glass.models import GlassQuerySet, GlassStep

logger = logging.getLogger(__name__)

SILENT_AFTER = timedelta(seconds=30)
"""A worker tends its step twice a second."""
MOST_ATTEMPTS = 2
KILLED = "The worker that had it was lost twice."
State = GlassStep.State


class GlassSummary(WireModel):
    """What the list of steps says of one that is done."""

    is_dead: bool
    """Whether no completion had an advantage."""
    reward_mean: float | None
    """Mean reward."""
    grad_norm: float
    """Norm of the gradient."""
    kl: float
    """Distance to the policy before, in nats a token."""


class TryoutSummary(WireModel):
    """What the list of tryouts says of one that is done."""

    pass_at_1: float
    """Share of tries that passed, over rows."""
    rows: int
    """Rows that were tried."""


@dataclass(frozen=True)
class GlassClaim:
    """The right to take one step, or to have a base model try."""

    glass_id: UUID
    attempt: int
    spec: GlassSpec | TryoutSpec
    directory: GlassDir
    run_dir: Path | None
    """Directory of the checkpoint's run."""
    models_dir: Path
    """Where the prepared built-in models lie."""


Order = Literal["go", "cancelled", "lost"]


def claim_glass(glass_id: UUID, worker: str) -> GlassClaim | None:
    """Take a waiting step; None when it is not there to be taken, or cannot be."""
    with transaction.atomic():
        step = GlassStep.objects.select_for_update(of=("self",)).filter(pk=glass_id).first()
        if step is None or step.state != State.WAITING:
            return None
        step.state, step.worker, step.attempts = State.RUNNING, worker, step.attempts + 1
        step.started_at = step.seen_at = timezone.now()
        step.save(update_fields=["state", "worker", "attempts", "started_at", "seen_at"])
        tell(step)
    try:
        spec = step.read_request()
    except ValidationError as error:
        _refuse(step, "bad_spec", f"What was asked for cannot be read: {error}")
        return None
    if step.attempts > MOST_ATTEMPTS:
        _refuse(step, "worker_lost", KILLED)
        return None
    if isinstance(spec, GlassSpec) and spec.checkpoint and step.run is None:
        _refuse(step, "run_deleted", "The run of the checkpoint has been deleted.")
        return None
    return GlassClaim(
        glass_id=step.pk,
        attempt=step.attempts,
        spec=spec,
        directory=step.directory,
        run_dir=step.run.directory if step.run else None,
        models_dir=Path(settings.MODELS_DIR),
    )


def tend_glass(claim: GlassClaim) -> Order:
    """The process lives: what is to become of it."""
    if not _mine(claim).update(seen_at=timezone.now()):
        return "lost"
    return "cancelled" if _mine(claim).filter(cancel_asked=True).exists() else "go"


def finish_glass(claim: GlassClaim, end: GlassEnd) -> bool:
    """The process has ended by itself; False when the step is somebody else's by now."""
    values: dict[str, Any] = {}
    if end.outcome == "done":
        try:
            values = json.loads(_summary(claim).model_dump_json())
        except (OSError, ValidationError) as error:
            logger.warning("Result of %s cannot be read: %s", claim.glass_id, error)
            end = GlassEnd(
                outcome="failed",
                cause="bad_result",
                message="The process said that it was done, but its result cannot be read.",
                advice="The disk may be full. Ask again.",
            )
    state = State.DONE if end.outcome == "done" else State.FAILED
    return _close(claim, state, end.cause, end.message, end.advice, values)


def cancel_claimed_glass(claim: GlassClaim) -> bool:
    """The process was killed because somebody did not want it any more."""
    return _close(claim, State.CANCELLED, "user", "Cancelled while a worker had it.", "", {})


@transaction.atomic
def release_glass(claim: GlassClaim) -> bool:
    """The worker shuts down: the step waits again, and this attempt does not count."""
    moved = _mine(claim).update(
        state=State.WAITING, attempts=claim.attempt - 1, worker="", sent_at=None, seen_at=None
    )
    if moved:
        tell(GlassStep.objects.get(pk=claim.glass_id))
    return bool(moved)


def requeue_silent_glass(free_slots: int) -> int:
    """For the reaper: steps of silent workers wait again; lost messages are sent again.

    Sends at most so many messages as slots are free; how many were sent.
    """
    silent = timezone.now() - SILENT_AFTER
    for step in GlassStep.objects.filter(state=State.RUNNING, seen_at__lt=silent):
        _give_up(step, silent)
    sent = 0
    waiting = GlassStep.objects.filter(state=State.WAITING).order_by("created_at")
    for glass_id in waiting.exclude(sent_at__gt=silent).values_list("pk", flat=True):
        if sent >= free_slots:
            break
        sent += send_glass(glass_id)
    return sent


@transaction.atomic
def _give_up(step: GlassStep, silent: datetime) -> None:
    """Its worker is silent: it waits for another, or is over if nobody wants it any more."""
    row = GlassStep.objects.filter(
        pk=step.pk, state=State.RUNNING, attempts=step.attempts, seen_at__lt=silent
    )
    if step.cancel_asked:
        moved = row.update(
            state=State.CANCELLED,
            cause="user",
            message="Cancelled; its worker was lost meanwhile.",
            finished_at=timezone.now(),
        )
    else:
        moved = row.update(state=State.WAITING, worker="", sent_at=None)
    if moved:
        step.refresh_from_db()
        tell(step)


def _mine(claim: GlassClaim) -> GlassQuerySet:
    """The row, as long as it is this claim's."""
    return GlassStep.objects.filter(pk=claim.glass_id, state=State.RUNNING, attempts=claim.attempt)


@transaction.atomic
def _close(
    claim: GlassClaim, state: str, cause: str, message: str, advice: str, summary: dict[str, Any]
) -> bool:
    """The end of a claimed step, once."""
    moved = _mine(claim).update(
        state=state,
        cause=cause[:60],
        message=message.replace("\0", ""),
        advice=advice.replace("\0", ""),
        summary=summary,
        finished_at=timezone.now(),
    )
    if moved:
        tell(GlassStep.objects.get(pk=claim.glass_id))
    return bool(moved)


def _refuse(step: GlassStep, cause: str, message: str) -> None:
    """A step that no process can take; it was claimed a moment ago."""
    step.state, step.cause, step.message = State.FAILED, cause, message.replace("\0", "")
    step.advice = "Ask anew, with another model or prompt."
    step.finished_at = timezone.now()
    with transaction.atomic():
        step.save(update_fields=["state", "cause", "message", "advice", "finished_at"])
        tell(step)


def _summary(claim: GlassClaim) -> GlassSummary | TryoutSummary:
    """A result in a line. Raises OSError or pydantic.ValidationError."""
    if isinstance(claim.spec, TryoutSpec):
        return _tryout_summary(claim.directory.read_tryout())
    result: GlassResult = claim.directory.read_result()
    return GlassSummary(
        is_dead=result.is_dead,
        reward_mean=result.reward_mean,
        grad_norm=result.grad_norm,
        kl=result.kl,
    )


def _tryout_summary(result: TryoutResult) -> TryoutSummary:
    """A tryout in a line."""
    return TryoutSummary(pass_at_1=result.pass_at_1.value, rows=len(result.rows))
