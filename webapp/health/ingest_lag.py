"""How far the database is behind what the trainers have written. Called by the figures."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import NamedTuple

from django.db.models import F

from webapp.runs import status
from webapp.runs.models import Attempt

MOST_RUNS = 200
LONGEST_LINE_BYTES = 1 << 16


class Backlog(NamedTuple):
    """Events that are no rows yet."""

    unread_bytes: int
    """Of all live runs together."""
    oldest_s: float
    """Seconds since the oldest of them was written; 0 when there is none."""


def read_backlog() -> Backlog:
    """Look at the newest attempt of each live run."""
    attempts = (
        Attempt.objects.filter(run__state__in=status.LIVE, number=F("run__attempt"))
        .select_related("run")
        .order_by("-started_at")[:MOST_RUNS]
    )
    unread, oldest = 0, 0.0
    for attempt in attempts:
        file = attempt.run.run_dir.events_file(attempt.number)
        size, age = _behind(file, attempt.ingest_offset)
        unread, oldest = unread + size, max(oldest, age)
    return Backlog(unread, oldest)


def _behind(file: Path, offset: int) -> tuple[int, float]:
    """Unread bytes of one file, and the age of the first unread event in seconds."""
    try:
        with file.open("rb") as events:
            size = events.seek(0, 2)
            events.seek(offset)
            line = events.readline(LONGEST_LINE_BYTES)
    except OSError:
        return 0, 0.0
    if size <= offset:
        return 0, 0.0
    return size - offset, _age_of(line)


def _age_of(line: bytes) -> float:
    """Seconds since an event was written; 0 for a line that is not whole."""
    try:
        return max(0.0, time.time() - float(json.loads(line)["t"]))
    except (ValueError, KeyError, TypeError):
        return 0.0
