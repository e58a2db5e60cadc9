"""All rows of a run as one value, to compare two states of the index."""

from __future__ import annotations

from typing import Any

from django.db.models import Model

from webapp.evaluation.models import EvalRun
from webapp.metrics.models import MetricSeries
from webapp.metrics.read import read_series
from webapp.rollouts.models import Rollout, RolloutGroup
from webapp.runs.models import (
    Attempt,
    Checkpoint,
    ControlRequest,
    Run,
    RunEvent,
    RunNotice,
)

TABLES: tuple[tuple[type[Model], str], ...] = (
    (Run, "pk"),
    (RunEvent, "run"),
    (Attempt, "run"),
    (Checkpoint, "run"),
    (ControlRequest, "run"),
    (RunNotice, "run"),
    (EvalRun, "run"),
    (RolloutGroup, "run"),
    (Rollout, "group__run"),
)


def index_of(run: Run) -> dict[str, Any]:
    """All rows of a run without their keys, and all its series."""
    rows = {
        model.__name__: sorted(
            str({k: v for k, v in row.items() if k not in {"id", "group_id"}})
            for row in model._default_manager.filter(**{path: run.pk}).values()
        )
        for model, path in TABLES
    }
    keys = MetricSeries.objects.filter(run_id=run.pk).values_list("key", flat=True)
    return rows | {"series": {key: str(read_series(run.pk, key)) for key in keys}}
