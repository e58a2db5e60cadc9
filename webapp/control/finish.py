"""End an attempt and bring its run where it belongs.

Called by the supervisor when its trainer is gone, and by the reaper when the supervisor is. The
attempt's own word (`attempt_finished`) outranks what the caller concludes from outside.
"""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction

from webapp.control.attempts import close_attempt
from webapp.control.checkpoints import has_progressed
from webapp.control.claims import Claim, LeaseLost, heartbeat
from webapp.control.texts import clean_text
from webapp.control.verdicts import Settlement, Verdict, settle
from webapp.runs.dispatch import dispatch_run_on_commit
from webapp.runs.models import Attempt, Checkpoint, Run
from webapp.runs.moves import lock_run, move
from webapp.runs.status import Actor, RunState

LONGEST_RETRY_DELAY_S = 120.0


def finish_attempt(claim: Claim, seen: Verdict) -> Verdict:
    """The trainer is gone: settle the run, and say what its end counts as.

    Raises LeaseLost when the run is no longer the caller's.
    """
    heartbeat(claim)  # a run that was given up as lost meanwhile comes back first
    with transaction.atomic():
        run = lock_run(claim.run_id)
        if run.fencing_token != claim.token or not run.is_live:
            raise LeaseLost(f"run #{run.number} is {run.state}, token {run.fencing_token}")
        attempt = Attempt.objects.select_for_update(no_key=True).get(run=run, number=claim.attempt)
        verdict = close_attempt(attempt, seen)
        settle_run(run, attempt, verdict, actor=Actor.WORKER, who=claim.worker)
    return verdict


@transaction.atomic
def abandon_attempt(claim: Claim, seen: Verdict) -> None:
    """The trainer was ended because its run belongs to others now: close the attempt alone."""
    attempt = (
        Attempt.objects.select_for_update(no_key=True)
        .filter(run_id=claim.run_id, number=claim.attempt, ended_at=None)
        .first()
    )
    if attempt is not None:
        close_attempt(attempt, seen)


def settle_run(run: Run, attempt: Attempt, verdict: Verdict, *, actor: Actor, who: str) -> None:
    """Move the run to where a closed attempt leaves it, with a reason that a person understands."""
    settlement = settle(
        run.run_state,
        verdict,
        progressed=has_progressed(attempt),
        idle_attempts=run.idle_attempts,
        max_attempts=run.read_spec().resources.max_attempts,
    )
    move(
        run,
        settlement.state,
        actor=actor,
        who=who,
        cause=clean_text(verdict.cause, 60),
        message=clean_text(_message(run, verdict, settlement)),
        advice=clean_text(verdict.advice),
        columns={"idle_attempts": settlement.idle_attempts},
    )
    if settlement.state is RunState.QUEUED and not retry_delay(settlement.idle_attempts):
        dispatch_run_on_commit(run.pk)


def retry_delay(idle_attempts: int) -> timedelta:
    """How long a run that keeps crashing waits before the next attempt: 0, 0, 5, 10, 20 ... s."""
    if idle_attempts < 2:
        return timedelta(0)
    return timedelta(seconds=min(LONGEST_RETRY_DELAY_S, 5.0 * 2 ** (idle_attempts - 2)))


def _message(run: Run, verdict: Verdict, settlement: Settlement) -> str:
    """What happened and what comes now, before the trainer's last words where there are any."""
    sentence, _, last_words = verdict.message.partition("\n")
    if settlement.gave_up:
        tries = settlement.idle_attempts
        sentence = f"{sentence} Given up after {tries} attempts without a new checkpoint."
    elif settlement.state is RunState.QUEUED:
        newest = Checkpoint.objects.filter(run=run).on_disk().order_by("-step").first()
        sentence += f" It goes on from step {newest.step}." if newest else " It begins again."
    return f"{sentence}\n{last_words}".strip()
