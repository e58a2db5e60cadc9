"""What happened at which step of a run: attempts, stages, checkpoints, comments, evaluations.

Used by the keys endpoint and the report; drawn as markers over the curves.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from webapp.evaluation.models import EvalRun
from webapp.metrics.models import MetricCut
from webapp.runs.models import Run


def marks_of(run: Run) -> dict[str, Any]:
    """All markers of a run."""
    return {
        "stages": _stages(run),
        "attempts": [
            {"attempt": cut.attempt, "step": cut.start_step}
            for cut in MetricCut.objects.filter(run=run, attempt__gt=1).order_by("attempt")
        ],
        "checkpoints": [
            {"step": c.step, "best": c.is_best, "removed": c.removed_at is not None}
            for c in run.checkpoints.order_by("step")
        ],
        "comments": _commented_steps(run),
        "evaluations": evaluation_intervals(run),
    }


def _commented_steps(run: Run) -> list[int]:
    """Steps that somebody said something about."""
    standing = run.comments.filter(deleted_at=None).order_by("step")
    steps = standing.values_list("step", flat=True).distinct()
    return [step for step in steps if step is not None]


def evaluation_intervals(run: Run) -> dict[str, list[dict[str, Any]]]:
    """Held-out estimates with their 95 % intervals, by metric name."""
    found: dict[str, list[dict[str, Any]]] = {}
    for evaluation in EvalRun.objects.current().filter(run=run).order_by("step", "attempt", "seq"):
        for result in evaluation.results:
            for key, interval in _intervals(result):
                found.setdefault(key, []).append(
                    {
                        "step": evaluation.step,
                        "value": interval["value"],
                        "title": evaluation.title,
                        "low": interval["low"],
                        "high": interval["high"],
                        "n": interval["n"],
                    }
                )
    return found


def _intervals(result: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Metric name and interval of each estimate in one domain's result."""
    domain = result["domain"]
    prefix = "eval" if domain == "all" else f"domain/{domain}/eval"
    yield f"{prefix}/pass@1", result["pass_at_1"]
    yield f"{prefix}/reward", result["reward"]
    if domain == "all":
        for name, interval in result["components"].items():
            yield f"eval/rewards/{name}", interval


def _stages(run: Run) -> list[dict[str, Any]]:
    """First step and name of each stage of the program."""
    stages, first = [], 0
    for stage in run.spec.get("stages", []):
        stages.append({"name": stage["name"], "kind": stage.get("type", ""), "step": first})
        first += stage["steps"]
    return stages
