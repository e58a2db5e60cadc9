from __future__ import annotations

import base64
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

Js = Callable[..., Any]
SERIES = "charts/series.js"
RUN = "00000000-0000-7000-8000-000000000000"


def encode(values: list[float]) -> str:
    return base64.b64encode(np.array(values, "<f8").tobytes()).decode()


def answer(
    x: list[float], y: list[float], cursor: str = "1", mode: str = "full", **more: Any
) -> dict[str, Any]:
    curve = {
        "run": RUN,
        "key": "loss",
        "mode": mode,
        "n_total": len(x),
        "n_drawn": len(x),
        "exact": True,
        "n_bad": 0,
        "has_axis": True,
        "line": {"x": 0, "y": 1},
        "nonfinite": [],
        "smooth": {"x": 0, "y": 1},
        "band": None,
        "superseded": [],
    }
    return {
        "cursor": cursor,
        "x": {"kind": "step"},
        "metrics": {},
        "curves": [curve | more],
        "arrays": [encode(x), encode(y)],
    }


def test_every_bit_survives_the_way_to_the_browser(js: Js) -> None:
    odd = [math.nan, math.inf, -math.inf, -0.0, 5e-324, 1.797e308, 0.1]
    got = js(
        SERIES,
        "return [...m.decodeArray(a)].map((v) => Object.is(v, -0) ? '-0' : String(v))",
        encode(odd),
    )
    assert got == ["NaN", "Infinity", "-Infinity", "-0", "5e-324", "1.797e+308", "0.1"]


def test_appended_points_go_behind_and_shared_steps_stay_shared(js: Js) -> None:
    body = """
      const known = new Map();
      m.mergeCurves(known, m.decodeAnswer(a[0]));
      const before = [...known.values()][0];
      const changed = m.mergeCurves(known, m.decodeAnswer(a[1]));
      const [curve] = known.values();
      return { changed: changed.length, total: curve.total, y: [...curve.line.y],
               smooth: [...curve.smooth.y],
               fresh: curve !== before && curve.line.x !== before.line.x,
               shared: curve.line.step === curve.line.x };
    """
    got = js(SERIES, body, [answer([1, 2], [5, 6]), answer([3], [7], "2", "append")])
    assert got == {
        "changed": 1,
        "total": 3,
        "y": [5, 6, 7],
        "smooth": [5, 6, 7],
        "fresh": True,
        "shared": True,
    }


def test_a_whole_curve_replaces_what_was_there(js: Js) -> None:
    body = """
      const known = new Map();
      a.forEach((one) => m.mergeCurves(known, m.decodeAnswer(one)));
      return [...[...known.values()][0].line.y];
    """
    assert js(SERIES, body, [answer([1, 2, 3], [1, 1, 1]), answer([1, 2], [9, 9], "5")]) == [9, 9]


@pytest.mark.parametrize(
    ("cursor", "than", "older"),
    [
        ("3", "4", True),
        ("4", "4", False),
        ("10", "9", False),
        ("5.1", "4.2", True),
        ("1", "", False),
    ],
)
def test_versions_only_grow(js: Js, cursor: str, than: str, older: bool) -> None:
    assert js(SERIES, "return m.isOlder(a[0], a[1])", [cursor, than]) is older


def test_a_window_keeps_one_neighbour_on_each_side(js: Js) -> None:
    body = """
      const x = Float64Array.from(a.x);
      const part = m.windowOf({ x, y: x, step: x }, a.range);
      return [[...part.x], m.countInside({ x }, a.range)];
    """
    x = [1, 2, 3, 4, 5, 6]
    assert js(SERIES, body, {"x": x, "range": [2.5, 4]}) == [[2, 3, 4, 5], 2]
    assert js(SERIES, body, {"x": x, "range": [3.2, 3.4]}) == [[3, 4], 0]
    assert js(SERIES, body, {"x": x, "range": [-5, 50]}) == [x, 6]
    assert js(SERIES, body, {"x": [], "range": [0, 1]}) == [[], 0]


def test_places_of_steps_lie_on_the_line(js: Js) -> None:
    body = """
      const line = { x: Float64Array.of(0, 100, 400), step: Float64Array.of(0, 10, 20) };
      return a.map((step) => m.placeOfStep(line, step));
    """
    assert js(SERIES, body, [0, 5, 10, 15, 99]) == [0, 50, 100, 250, 400]
    assert js(SERIES, "return m.placeOfStep({ x: new Float64Array() }, 3)") is None


def test_the_nearest_point_is_found(js: Js) -> None:
    body = "return a[1].map((x) => m.nearest(Float64Array.from(a[0]), x))"
    assert js(SERIES, body, [[0, 10, 20], [-5, 4, 6, 14, 99]]) == [0, 0, 1, 1, 2]
    assert js(SERIES, body, [[], [1]]) == [-1]


def test_the_clock_axis_breaks_where_a_run_paused(js: Js) -> None:
    body = """
      const of = (...v) => Float64Array.from(v);
      const line = m.breakLine({ x: of(1, 2, 9), y: of(5, 6, 7), step: of(1, 2, 3) },
                               { attempts: [{ step: 2 }] });
      return [...line.y].map((v) => (Number.isNaN(v) ? null : v));
    """
    assert js(SERIES, body) == [5, 6, None, 7]
