"""The parameters of a curves request, checked one by one.

Used by the curves endpoint and its exports. What is wrong is said at the parameter's name.
"""

from __future__ import annotations

import math
import re
from uuid import UUID

from django.http import QueryDict

from webapp.metrics.axes import AXIS_KINDS
from webapp.metrics.curves import CurveQuery
from webapp.metrics.smoothing import MAX_WEIGHT

MAX_RUNS = 100
MAX_KEYS = 200
MAX_CURVES = 2000
MAX_KEY_CHARS = 255
BUDGETS = (4, 20_000)
DEFAULT_BUDGET = 1500


class BadParameter(ValueError):
    """A parameter that cannot be used."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"{name}: {message}")
        self.name = name
        self.message = message


def parse_query(params: QueryDict) -> CurveQuery:
    """The query that a request's parameters ask for. Raises BadParameter."""
    run_ids = tuple(dict.fromkeys(_uuid(text) for text in params.getlist("run")))
    keys = tuple(dict.fromkeys(_key(text) for text in params.getlist("key")))
    _check_counts(len(run_ids), len(keys))
    axis = next((kind for kind in AXIS_KINDS if kind == params.get("x", "step")), None)
    if axis is None:
        raise BadParameter("x", f"must be one of {', '.join(AXIS_KINDS)}")
    low, high = _number(params, "from"), _number(params, "to")
    if low is not None and high is not None and low > high:
        raise BadParameter("to", "must not be less than from")
    since = _since(params.get("since", ""), len(run_ids))
    if since is not None and (low is not None or high is not None):
        raise BadParameter("since", "goes with the whole curve, not with from or to")
    return CurveQuery(
        run_ids=run_ids,
        keys=keys,
        axis=axis,
        lo=low,
        hi=high,
        budget=_budget(params.get("budget", "")),
        weight=_weight(_number(params, "smooth") or 0.0),
        superseded=_flag(params, "superseded"),
        since=since,
    )


def _check_counts(runs: int, keys: int) -> None:
    if not 1 <= runs <= MAX_RUNS:
        raise BadParameter("run", f"give 1 to {MAX_RUNS} run ids, not {runs}")
    if not 1 <= keys <= MAX_KEYS:
        raise BadParameter("key", f"give 1 to {MAX_KEYS} metric names, not {keys}")
    if runs * keys > MAX_CURVES:
        raise BadParameter(
            "key", f"{runs} runs of {keys} metrics are more than {MAX_CURVES} curves"
        )


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise BadParameter("run", f"{text!r} is not the id of a run") from None


def _key(text: str) -> str:
    """The name of a metric; PostgreSQL takes no NUL, and no name is so long."""
    if len(text) > MAX_KEY_CHARS or "\0" in text:
        raise BadParameter("key", f"{text[:40]!r} is not the name of a metric")
    return text


def _number(params: QueryDict, name: str) -> float | None:
    """A finite number, or None where the parameter is missing or empty."""
    text = params.get(name, "")
    if text == "":
        return None
    try:
        value = float(text)
    except ValueError:
        raise BadParameter(name, f"{text!r} is not a number") from None
    if not math.isfinite(value):
        raise BadParameter(name, "must be finite")
    return value


def _budget(text: str) -> int:
    low, high = BUDGETS
    if text == "":
        return DEFAULT_BUDGET
    if not re.fullmatch(r"[0-9]{1,9}", text) or not low <= int(text) <= high:
        raise BadParameter("budget", f"must be a whole number from {low} to {high}")
    return int(text)


def _weight(weight: float) -> float:
    if not 0 <= weight <= MAX_WEIGHT:
        raise BadParameter("smooth", f"must lie between 0 and {MAX_WEIGHT}")
    return weight


def _flag(params: QueryDict, name: str) -> bool:
    text = params.get(name, "0")
    if text not in ("", "0", "1"):
        raise BadParameter(name, "must be 0 or 1")
    return text == "1"


def _since(text: str, runs: int) -> tuple[int, ...] | None:
    """The cursor of an earlier answer: one version a run, joined by dots."""
    if text == "":
        return None
    parts = text.split(".")
    if len(parts) != runs or not all(p.isascii() and p.isdecimal() and len(p) < 19 for p in parts):
        raise BadParameter("since", "must be the cursor of an answer for the same runs")
    return tuple(int(part) for part in parts)
