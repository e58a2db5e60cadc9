"""Notices on a run: what a person should know while training goes on. Called by `record`."""

from __future__ import annotations

from datetime import UTC, datetime

from webapp.control.texts import clean_text
from webapp.runs.models import Attempt, RunNotice


def add_notice(
    attempt: Attempt, *, seq: int, step: int, level: str, code: str, message: str, t: float
) -> None:
    """Store one notice; repeating it changes nothing."""
    RunNotice.objects.get_or_create(
        run_id=attempt.run_id,
        attempt=attempt.number,
        seq=seq,
        code=code[:60],
        defaults={
            "step": step,
            "level": level,
            "message": clean_text(message),
            "at": datetime.fromtimestamp(t, UTC),
        },
    )
