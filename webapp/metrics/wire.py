"""The curves answer as JSON.

Used by the curves endpoint; decoded by `static/js/charts/series.js`. Arrays are float64 in base64,
little-endian, which keeps every bit, NaN and infinities included; equal arrays (the same steps in
many curves) are sent once and named by their place in `arrays`. The JSON itself is strict.
"""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from numpy.typing import NDArray

from webapp.metrics.axes import AXES
from webapp.metrics.catalogue import describe, is_evaluation, meaning_of, unit_of
from webapp.metrics.curves import Band, Curve, CurveQuery, CurveSet, Line

VERSION = 1
"""Changes when the answer's form does."""


class ArrayPool:
    """Arrays of one answer, each once."""

    def __init__(self) -> None:
        self.encoded: list[str] = []
        self._places: dict[bytes, int] = {}

    def add(self, array: NDArray[Any]) -> int:
        """The place of an array in the answer."""
        raw = np.asarray(array, dtype="<f8").tobytes()
        if raw not in self._places:
            self._places[raw] = len(self.encoded)
            self.encoded.append(base64.b64encode(raw).decode())
        return self._places[raw]


def encode(query: CurveQuery, answer: CurveSet) -> dict[str, Any]:
    """The answer as a JSON document."""
    pool = ArrayPool()
    axis = AXES[query.axis]
    curves = [_curve(pool, query, curve) for curve in answer.curves]
    return {
        "wire": VERSION,
        "x": {"kind": query.axis, "title": axis.title, "unit": axis.unit},
        "smooth": query.weight,
        "budget": query.budget,
        "cursor": ".".join(map(str, answer.versions)),
        "metrics": {key: metric_words(key) for key in query.keys},
        "curves": curves,
        "arrays": pool.encoded,
    }


def metric_facts(key: str) -> dict[str, Any]:
    """What the catalogue says about a metric."""
    metric = describe(key)
    return {
        "unit": metric.unit,
        "direction": metric.direction,
        "meaning": metric.meaning,
        "headline": metric.headline,
        "wall_clock": metric.wall_clock,
        "evaluation": is_evaluation(key),
    }


def metric_words(key: str) -> dict[str, Any]:
    """The same in the reader's language."""
    metric = describe(key)
    return {**metric_facts(key), "unit": unit_of(metric), "meaning": meaning_of(metric)}


def _curve(pool: ArrayPool, query: CurveQuery, curve: Curve) -> dict[str, Any]:
    return {
        "run": str(curve.run_id),
        "key": curve.key,
        "mode": curve.mode,
        "n_total": curve.n_total,
        "n_drawn": len(curve.line.x),
        "exact": curve.exact,
        "n_bad": curve.bad,
        "has_axis": curve.has_axis,
        "line": _line(pool, query, curve.line),
        "nonfinite": _nonfinite(curve.line.y),
        "smooth": _line(pool, query, curve.smoothed) if curve.smoothed else None,
        "band": _band(pool, curve.band) if curve.band else None,
        "superseded": [
            {"attempt": ghost.attempt, "line": _line(pool, query, ghost.line)}
            for ghost in curve.ghosts
        ],
    }


def _line(pool: ArrayPool, query: CurveQuery, line: Line) -> dict[str, int]:
    """Places of x, y and, where it is not x itself, step."""
    places = {"x": pool.add(line.x), "y": pool.add(line.y)}
    if query.axis != "step":
        places["step"] = pool.add(line.step)
    return places


def _band(pool: ArrayPool, band: Band) -> dict[str, int]:
    return {"x": pool.add(band.x), "lo": pool.add(band.lo), "hi": pool.add(band.hi)}


def _nonfinite(values: NDArray[np.float64]) -> list[tuple[int, str]]:
    """[index, kind] of each value that is no number one can draw."""
    return [(int(i), kind_of(float(values[i]))) for i in np.flatnonzero(~np.isfinite(values))]


def kind_of(value: float) -> str:
    """The name of a non-finite value."""
    if np.isnan(value):
        return "nan"
    return "inf" if value > 0 else "-inf"
