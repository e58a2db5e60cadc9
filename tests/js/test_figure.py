from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Js = Callable[..., Any]
MAKE = """
  const of = (values) => Float64Array.from(values, (v) => (v === null ? NaN : Number(v)));
  const line = (l) => l && { x: of(l.x), y: of(l.y), step: of(l.x) };
  const theme = { text: "#111111", muted: "#222222", line: "#333333", grid: "#333333", font: "x",
                  surface: "#ffffff", bad: "#ff0000", warn: "#ffaa00", series: ["#0072b2"] };
  const curves = a.curves.map((c) => ({ total: c.line.x.length, exact: true, bad: 0, hasAxis: true,
    ghosts: [], ...c, line: line(c.line), smooth: line(c.smooth), band: c.band && {
      x: of(c.band.x), lo: of(c.band.lo), hi: of(c.band.hi) } }));
  const colour = "#0072b2";
  const entries = curves.map((curve, i) => ({ curve, name: a.names?.[i] ?? "n", colour }));
  const xs = curves.flatMap((c) => [...c.line.x]);
  const options = { axis: "step", range: null, extent: [Math.min(...xs), Math.max(...xs)],
    isLog: false, revision: "r", metric: { unit: "", evaluation: false }, theme, ...a.options };
  const { data, layout, belowZero } = m.figureOf(entries, options);
  const plain = (v) => JSON.parse(JSON.stringify(v, (k, x) =>
    ArrayBuffer.isView(x) ? [...x] : x));
  return { data: plain(data), layout: plain(layout), belowZero };
"""


def figure(js: Js, *curves: dict[str, Any], names: list[str] | None = None, **options: Any) -> Any:
    return js("charts/figure.js", MAKE, {"curves": curves, "options": options, "names": names})


def curve(y: list[Any], **more: Any) -> dict[str, Any]:
    return {"line": {"x": list(range(1, len(y) + 1)), "y": y}, **more}


def named(made: Any, name: str) -> Any:
    return next(trace for trace in made["data"] if trace.get("name") == name)


def test_the_raw_line_lies_faint_under_the_smoothed_one(js: Js) -> None:
    smooth = {"x": [1, 2, 3], "y": [1, 1.5, 2]}
    made = figure(js, curve([1, 2, 3], smooth=smooth), names=["reward"])
    assert named(made, "measured")["opacity"] == 0.3
    assert named(made, "smoothed")["y"] == [1, 1.5, 2]
    bare = figure(js, curve([1, 2, 3]), names=["reward"])
    assert named(bare, "reward")["opacity"] == 1


def test_non_finite_values_are_gaps_with_a_mark(js: Js) -> None:
    made = figure(js, curve([1, None, "Infinity", 4]))
    line, marks = made["data"]
    assert line["y"] == [1, None, None, 4]
    assert line["connectgaps"] is False
    assert (marks["x"], marks["yaxis"], marks["marker"]["color"]) == ([2, 3], "y2", "#ff0000")
    assert marks["text"] == ["NaN at step 2", "∞ at step 3"]


def test_a_log_axis_puts_nothing_at_a_made_up_height(js: Js) -> None:
    made = figure(js, curve([10, 0, -5, 100]), isLog=True)
    line, rug = made["data"]
    assert line["y"] == [10, None, None, 100]
    assert rug["x"] == [2, 3]
    assert made["belowZero"] == 2
    assert made["layout"]["yaxis"]["type"] == "log"


def test_a_thinned_curve_is_a_band_and_a_line(js: Js) -> None:
    band = {"x": [1, 2], "lo": [0, 1], "hi": [5, 6]}
    smooth = {"x": [1, 2], "y": [2, 3]}
    made = figure(js, curve([0, 5, 1, 6], band=band, smooth=smooth, exact=False))
    low, high, line = made["data"]
    assert (low["y"], high["y"], high["fill"]) == ([0, 1], [5, 6], "tonexty")
    assert (low["hoverinfo"], high["hoverinfo"]) == ("skip", "skip")
    assert line["y"] == [2, 3]


def test_evaluations_are_points_with_intervals(js: Js) -> None:
    intervals = [{"step": 2, "low": 0.2, "high": 0.5, "n": 9, "title": "t", "value": 0.3}]
    metric = {"unit": "share of items", "evaluation": True}
    made = figure(js, curve([0.1, 0.3]), metric=metric, intervals=intervals)
    (trace,) = made["data"]
    assert trace["mode"] == "lines+markers"
    assert trace["error_y"]["array"] == [0, pytest.approx(0.2)]
    assert trace["error_y"]["arrayminus"] == [0, pytest.approx(0.1)]
    assert made["layout"]["yaxis"]["title"]["text"] == "share of items"


def test_names_are_text_and_never_markup(js: Js) -> None:
    made = figure(js, curve([1, 2]), curve([2, 3]), names=["<b>x</b>", "a & b"])
    assert [t["name"] for t in made["data"]] == ["&lt;b&gt;x&lt;/b&gt;", "a &amp; b"]
    made = figure(js, curve([1, 2]), metric={"unit": "<i>"})
    assert made["layout"]["yaxis"]["title"]["text"] == "&lt;i&gt;"


def test_superseded_points_are_dotted(js: Js) -> None:
    body = MAKE.replace("ghosts: []", "ghosts: [{ attempt: 1, line: line(a.ghost) }]")
    made = js(
        "charts/figure.js",
        body,
        {"curves": [curve([1, 2])], "ghost": {"x": [2, 3], "y": [7, 8]}, "options": {}},
    )
    ghost = named(made, "attempt 1, superseded")
    assert (ghost["y"], ghost["line"]["dash"]) == ([7, 8], "dot")


def test_a_constant_gets_a_scale_of_its_own_size(js: Js) -> None:
    low, high = figure(js, curve([1e-5] * 5))["layout"]["yaxis"]["range"]
    assert 0 < low < 1e-5 < high < 1e-4
    assert figure(js, curve([1, 2]))["layout"]["yaxis"]["autorange"] is True


def test_stages_and_attempts_are_marked_with_words_where_there_is_room(js: Js) -> None:
    marks = {
        "stages": [{"name": "warm-up", "step": 0}, {"name": "rl", "step": 4}],
        "attempts": [{"attempt": 2, "step": 50}],
        "checkpoints": [{"step": 50, "best": True}, {"step": 20, "removed": True}],
    }
    made = figure(js, curve([1.0] * 100), marks=marks)
    assert [shape["x0"] for shape in made["layout"]["shapes"]] == [4, 50]
    assert [note["text"] for note in made["layout"]["annotations"]] == ["rl", "attempt 2"]
    assert made["data"][-1]["marker"]["symbol"] == ["star", "triangle-down"]
    zoomed = figure(js, curve([1.0] * 100), marks=marks, range=[60, 90])
    assert zoomed["layout"]["shapes"] == []
    assert zoomed["layout"]["xaxis"]["range"] == [60, 90]


def test_the_clock_is_that_of_the_reader(js: Js) -> None:
    at = [1_700_000_000_000, 1_700_000_060_000]
    made = figure(js, {"line": {"x": at, "y": [1, 2]}}, axis="wall")
    offset = 5.5 * 3600e3  # the tests' browser lives in Kolkata
    assert made["data"][0]["x"] == [t + offset for t in at]
    back = js("charts/clock.js", "return m.fromClock(a, 'wall')", "2023-11-15 03:43:20.0000")
    assert back == at[0]


def test_time_has_round_ticks(js: Js) -> None:
    made = figure(js, {"line": {"x": [0, 400], "y": [1, 2]}}, axis="relative")
    assert made["layout"]["xaxis"]["ticktext"] == ["0 s", "2 min", "4 min", "6 min"]
