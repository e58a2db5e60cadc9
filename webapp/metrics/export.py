"""Curves as CSV or JSON files: exactly the points that a chart with the same parameters shows.

Used by the export endpoints. One row a drawn point; where thinning drew a value and its smoothed
companion at different steps, each has a row with the other empty.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import numpy as np

from webapp.metrics.axes import AXES
from webapp.metrics.curves import Curve, CurveQuery, CurveSet
from webapp.metrics.wire import kind_of, metric_facts
from webapp.runs.models import Run

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


class Row(NamedTuple):
    """One point of a file."""

    step: int
    time: str
    x: float
    value: float | None
    smoothed: float | None


def as_csv(query: CurveQuery, answer: CurveSet, runs: list[Run]) -> Iterator[str]:
    """Lines of a CSV file, the header first."""
    names = {run.pk: (run.number, plain_cell(run.name)) for run in runs}
    axis = [] if query.axis == "step" else [query.axis]
    head = ["run", "run_name", "metric", "step", "time", *axis, "value"]
    head += [f"smoothed_{query.weight:g}"] if query.weight else []
    yield _line(head)
    for curve in answer.curves:
        for row in _rows(curve):
            cells: list[object] = [*names[curve.run_id], plain_cell(curve.key), row.step, row.time]
            cells += [_number(row.x)] if axis else []
            cells += [_number(row.value)]
            cells += [_number(row.smoothed)] if query.weight else []
            yield _line(cells)


def as_document(query: CurveQuery, answer: CurveSet, runs: list[Run]) -> dict[str, Any]:
    """The same as one JSON document, with what it stands for."""
    by_id = {run.pk: run for run in runs}
    return {
        "x": {"kind": query.axis, "title": AXES[query.axis].title, "unit": AXES[query.axis].unit},
        "smoothing_weight": query.weight,
        "window": {"from": query.lo, "to": query.hi},
        "curves": [
            {
                "run": {"id": str(curve.run_id), "number": run.number, "name": run.name},
                "metric": {"name": curve.key, **metric_facts(curve.key)},
                "points_in_window": curve.n_total,
                "points_here": len(curve.line.x),
                "every_point": curve.exact,
                "points": [_plain(row) for row in _rows(curve)],
            }
            for curve in answer.curves
            for run in [by_id[curve.run_id]]
        ],
    }


def _rows(curve: Curve) -> Iterator[Row]:
    """Drawn values and smoothed values, joined by step."""
    smoothed = curve.smoothed
    values = dict(zip(curve.line.step.tolist(), curve.line.y.tolist(), strict=True))
    smooth = dict(zip(smoothed.step.tolist(), smoothed.y.tolist(), strict=True)) if smoothed else {}
    lines = [curve.line, smoothed] if smoothed else [curve.line]
    steps, first = np.unique(np.concatenate([line.step for line in lines]), return_index=True)
    xs = np.concatenate([line.x for line in lines])[first]
    ts = np.concatenate([line.t for line in lines])[first]
    for step, x, t in zip(steps.tolist(), xs.tolist(), ts.tolist(), strict=True):
        yield Row(step, _time(t), x, values.get(step), smooth.get(step))


def _plain(row: Row) -> dict[str, Any]:
    """A row with non-finite numbers as words."""
    return {
        name: kind_of(value) if isinstance(value, float) and not np.isfinite(value) else value
        for name, value in row._asdict().items()
    }


def _time(microseconds: int) -> str:
    """ISO 8601 in UTC; empty outside of the calendar."""
    try:
        return (EPOCH + timedelta(microseconds=microseconds)).isoformat()
    except OverflowError:
        return ""


def _number(value: float | None) -> str:
    """Shortest text that reads back as the same number."""
    if value is None:
        return ""
    return repr(value) if np.isfinite(value) else kind_of(value)


def plain_cell(text: str) -> str:
    """Text that no spreadsheet takes for a formula; every CSV file of the program uses it."""
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text


def _line(cells: list[Any]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer).writerow(cells)
    return buffer.getvalue()
