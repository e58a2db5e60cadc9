"""How an attempt ended, kept in its row and in its directory.

Called wherever an attempt is closed: by the supervisor, the reaper, the next claim. What would
surprise: `end.json` is written here and not by the trainer, since a killed trainer cannot; with it
a reingest knows how every attempt ended.
"""

from __future__ import annotations

import json
import logging
from datetime import datetime

from django.utils import timezone

from training_core.contract.rundir import RunDir, write_atomic
from webapp.control.texts import clean_text
from webapp.control.verdicts import Verdict
from webapp.runs.models import Attempt, Run

logger = logging.getLogger(__name__)

WORKER_LOST = Verdict(
    "failed", "worker_lost", "Its worker fell silent and did not come back.", retryable=True
)


def close_attempt(attempt: Attempt, seen: Verdict) -> Verdict:
    """Close an attempt; what its trainer said outranks what was seen. Returns what counts."""
    verdict = recorded_verdict(attempt) or seen
    write_verdict(attempt, verdict, timezone.now())
    _write_end(attempt.run.run_dir, attempt, verdict)
    return verdict


def close_open_attempts(run: Run) -> None:
    """Attempts that nobody could close: their worker died and the run was stopped meanwhile."""
    for attempt in Attempt.objects.select_for_update(no_key=True).filter(run=run, ended_at=None):
        close_attempt(attempt, WORKER_LOST)


def recorded_verdict(attempt: Attempt) -> Verdict | None:
    """What the trainer itself said, or None."""
    if not attempt.outcome:
        return None
    return Verdict(
        attempt.outcome,  # type: ignore[arg-type]  # only outcomes are ever stored
        attempt.cause,
        attempt.message,
        attempt.advice,
        attempt.retryable,
    )


def write_verdict(attempt: Attempt, verdict: Verdict, ended_at: datetime) -> None:
    """Put a verdict on the attempt's row."""
    attempt.outcome = verdict.outcome
    attempt.cause = clean_text(verdict.cause, 60)
    attempt.message = clean_text(verdict.message)
    attempt.advice = clean_text(verdict.advice)
    attempt.retryable = verdict.retryable
    attempt.ended_at = ended_at
    attempt.save(update_fields=["outcome", "cause", "message", "advice", "retryable", "ended_at"])


def read_end(run_dir: RunDir, number: int) -> tuple[Verdict, datetime] | None:
    """How an attempt ended and when; None while it runs or when nobody could say."""
    try:
        end = json.loads(run_dir.end_file(number).read_bytes())
        ended_at = datetime.fromisoformat(end.pop("ended_at"))
        return Verdict(**end), ended_at
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _write_end(run_dir: RunDir, attempt: Attempt, verdict: Verdict) -> None:
    """Say in the directory how the attempt ended; a full disk must not keep the run from ending."""
    if attempt.ended_at is None or not run_dir.attempt(attempt.number).is_dir():
        return
    end = {**verdict._asdict(), "ended_at": attempt.ended_at.isoformat()}
    try:
        write_atomic(run_dir.end_file(attempt.number), json.dumps(end, indent=2).encode())
    except OSError as error:
        logger.warning("How %s ended could not be written: %s", attempt, error)
