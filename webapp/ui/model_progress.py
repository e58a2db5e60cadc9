"""How far the built-in model's preparation is, as `workers.prepare_model` notes it in a file.

Called by the fragment on the runs and launch pages. A file that is missing or torn means that the
preparation has not begun, never an error.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from django.conf import settings
from django.utils import timezone
from django.utils.dateparse import parse_datetime

PROGRESS_FILE = "progress.json"
STALE_AFTER = timedelta(minutes=2)
STATES = frozenset({"waiting", "running", "ready", "failed"})


class ModelProgress(NamedTuple):
    """State of the preparation."""

    state: str
    """waiting, running, ready or failed."""
    done: float
    """Part that is done."""
    total: float
    """Whole; 0 when unknown."""
    message: str
    """What is being done, or what went wrong."""
    is_stale: bool
    """Whether it says running but has not said anything for a while."""


def read_model_progress(folder: Path | None = None) -> ModelProgress:
    """The newest word of the preparation."""
    file = (folder or Path(settings.MODELS_DIR)) / PROGRESS_FILE
    try:
        content = json.loads(file.read_bytes())
        state = content["state"] if content["state"] in STATES else "waiting"
        moment = _moment(content.get("updated_at"))
        stale = state == "running" and moment is not None and timezone.now() - moment > STALE_AFTER
        return ModelProgress(
            state,
            float(content.get("done") or 0),
            float(content.get("total") or 0),
            str(content.get("message") or ""),
            stale,
        )
    except (OSError, ValueError, KeyError, TypeError):
        return ModelProgress("waiting", 0, 0, "", False)


def _moment(value: object) -> datetime | None:
    """A time as ISO text or as seconds since 1970."""
    if isinstance(value, int | float):
        return datetime.fromtimestamp(value, tz=timezone.get_current_timezone())
    parsed = parse_datetime(value) if isinstance(value, str) else None
    if parsed is not None and timezone.is_naive(parsed):
        return timezone.make_aware(parsed)
    return parsed
