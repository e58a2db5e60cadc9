from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import numpy as np
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.webapp.metrics.model import PlainStore
from webapp.metrics import snapshot
from webapp.metrics.curves import Curve, CurveQuery
from webapp.metrics.models import MetricSeries
from webapp.metrics.pyramid import load_chunks
from webapp.metrics.read import read_curves
from webapp.metrics.services import MetricPoint, append_points, supersede_after
from webapp.metrics.smoothing import smooth
from webapp.runs.models import Attempt, Run

pytestmark = pytest.mark.django_db
DRAWN = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def store(run: Run, values: list[float], attempt: int = 1, first: int = 0, key: str = "x") -> None:
    points = [MetricPoint(first + i, 1000.0 + first + i, {key: v}) for i, v in enumerate(values)]
    append_points(run.pk, attempt, points)


def curve(run: Run, key: str = "x", **options: object) -> Curve:
    query = CurveQuery((run.pk,), (key,))._replace(**options)  # type: ignore[arg-type]
    return read_curves(query).curves[0]


def finite(values: np.ndarray) -> np.ndarray:
    return values[np.isfinite(values)]


@DRAWN
@given(
    st.integers(1, 2500),
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.0, 0.01, 0.5, 1.0]),
    st.integers(0, 2500),
    st.sampled_from([4, 16, 100, 400]),
    st.data(),
)
def test_extremes_ends_and_bad_values_survive_any_budget_and_window(
    make_run: Callable[..., Run],
    small_chunks: None,
    n: int,
    seed: int,
    bad_frac: float,
    cut: int,
    budget: int,
    data: st.DataObject,
) -> None:
    run, model = make_run(), PlainStore()
    rng = np.random.default_rng(seed)
    odd = rng.choice([math.nan, math.inf, -math.inf], n)
    values = np.where(rng.random(n) < bad_frac, odd, rng.normal(size=n)).tolist()
    store(run, values)
    cut = min(cut, len(values))
    supersede_after(run.pk, 2, cut)
    store(run, [v * 2 for v in values[: cut + 9]], attempt=2, first=cut + 1)
    model.points[1]["x"] = {s: (0.0, v) for s, v in enumerate(values)}
    model.points[2]["x"] = {cut + 1 + s: (0.0, v * 2) for s, v in enumerate(values[: cut + 9])}
    model.supersede(2, cut)
    live = model.live("x")
    lo = data.draw(st.integers(-1, len(live)))
    hi = data.draw(st.integers(lo, len(live) + 1))
    got = curve(run, budget=budget, lo=float(lo), hi=float(hi))
    steps = np.array([s for s, _ in live])
    first, last = np.searchsorted(steps, lo), np.searchsorted(steps, hi, "right")
    window = live[max(0, first - 1) : last + 1]
    assert got.n_total == len(window)
    assert got.exact == (len(window) <= budget)
    want = np.array([v for _, v in window])
    if got.exact:
        assert got.line.step.tolist() == [s for s, _ in window]
        assert got.line.y.tobytes() == want.tobytes()
        return
    drawn = dict(zip(got.line.step.tolist(), got.line.y.tolist(), strict=True))
    at = dict(live)
    assert all(np.array_equal(at[s], v, equal_nan=True) for s, v in drawn.items())
    assert (np.diff(got.line.step) > 0).all()
    assert len(finite(got.line.y)) <= max(budget, 4)
    assert got.bad == len(want) - len(finite(want))
    for kind in (np.isnan, np.isposinf, np.isneginf):
        assert kind(got.line.y).any() == kind(want).any()
    if len(finite(want)):
        assert got.line.y[np.isfinite(got.line.y)].min() == finite(want).min()
        assert got.line.y[np.isfinite(got.line.y)].max() == finite(want).max()
        assert got.band is not None
        assert (got.band.lo.min(), got.band.hi.max()) == (finite(want).min(), finite(want).max())
        ends = [v for v in want if math.isfinite(v)]
        shown = finite(got.line.y)
        assert (shown[0], shown[-1]) == (ends[0], ends[-1])


def test_one_spike_in_a_million_is_drawn_from_few_rows(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    n, spike = 1_000_000, 612_345
    values = np.sin(np.arange(n) / 1e4)
    values[spike] = 50.0
    for i in range(0, n, 250_000):
        store(run, values[i : i + 250_000].tolist(), first=i)
    loaded: list[int] = []

    def load(level: int, wanted: Sequence[tuple[int, int]]) -> object:
        found = load_chunks(level, wanted)
        loaded.extend(chunk.nbytes for chunk in found.values())
        return found

    monkeypatch.setattr(snapshot, "load_chunks", load)
    with CaptureQueriesContext(connection) as queries:
        got = curve(run)
    assert (got.n_total, got.exact) == (n, False)
    assert len(got.line.y) <= 1500
    assert got.line.step[got.line.y == 50.0].tolist() == [spike]
    assert len(queries) < 12
    assert len(loaded) < 25  # of 1000 chunks
    assert sum(loaded) < 1_500_000  # of 32 million bytes
    del loaded[:]
    curve(run, lo=500_000.0, hi=501_000.0)
    assert len(loaded) <= 4


def test_short_series_are_drawn_whole(run: Run) -> None:
    for n in (1, 2, 1500):
        store(run, [float(i) for i in range(n)], key=f"k{n}")
        got = curve(run, f"k{n}")
        assert got.exact
        assert got.line.y.tolist() == [float(i) for i in range(n)]
    assert read_curves(CurveQuery((run.pk,), ("nothing",))).curves == []


@DRAWN
@given(
    st.lists(st.integers(1, 60), min_size=1, max_size=6),
    st.sampled_from([0.0, 0.6, 0.99]),
    st.integers(0, 2**32 - 1),
)
def test_deltas_add_up_to_the_full_read(
    make_run: Callable[..., Run], small_chunks: None, sizes: list[int], weight: float, seed: int
) -> None:
    run, rng, first = make_run(), np.random.default_rng(seed), 0
    query = CurveQuery((run.pk,), ("x",), weight=weight, since=(0,))
    x, y, smoothed = [], [], []
    for size in sizes:
        store(run, rng.normal(size=size).tolist(), first=first)
        first += size
        answer = read_curves(query)
        (news,) = answer.curves
        assert news.n_total == size
        assert news.mode == "append"
        x += news.line.x.tolist()
        y += news.line.y.tolist()
        smoothed += news.smoothed.y.tolist() if news.smoothed else []
        query = query._replace(since=answer.versions)
        assert read_curves(query).curves == []
    full = read_curves(query._replace(since=None)).curves[0]
    assert (x, y) == (full.line.x.tolist(), full.line.y.tolist())
    if full.smoothed:
        np.testing.assert_allclose(smoothed, full.smoothed.y, rtol=1e-11, atol=1e-13)


def test_a_delta_costs_what_is_new(run: Run) -> None:
    store(run, np.zeros(200_000).tolist())
    known = read_curves(CurveQuery((run.pk,), ("x",))).versions
    store(run, [1.0], first=200_000)
    query = CurveQuery((run.pk,), ("x",), since=known, weight=0.6)
    with CaptureQueriesContext(connection) as queries:
        (news,) = read_curves(query).curves
    assert (news.mode, news.line.y.tolist()) == ("append", [1.0])
    assert len(queries) < 12


@pytest.mark.parametrize("change", ["rewrite", "resume", "late attempt", "same step again"])
def test_what_changes_the_past_comes_as_a_whole_curve(run: Run, change: str) -> None:
    store(run, [0.0] * 50)
    known = read_curves(CurveQuery((run.pk,), ("x",))).versions
    if change == "rewrite":
        store(run, [9.0], first=10)
    if change == "resume":
        supersede_after(run.pk, 2, 30)
    if change == "late attempt":
        store(run, [9.0], attempt=0, first=60)
    if change == "same step again":
        store(run, [9.0], attempt=2, first=49)
    (news,) = read_curves(CurveQuery((run.pk,), ("x",), since=known)).curves
    assert news.mode == "full"
    assert news.line.y.tolist() == curve(run).line.y.tolist()


def test_smoothing_comes_before_thinning_and_before_the_window(run: Run) -> None:
    values = np.random.default_rng(0).normal(size=9000)
    store(run, values.tolist())
    whole = smooth(values, 0.9)
    got = curve(run, weight=0.9, budget=200)
    assert got.smoothed is not None
    assert got.smoothed.y.tolist() == whole[got.smoothed.step].tolist()
    assert len(got.smoothed.y) == 50
    trend = np.array([part.mean() for part in np.split(whole, 50)])
    np.testing.assert_allclose(got.smoothed.y, trend, atol=0.02)
    window = curve(run, weight=0.9, lo=4000.0, hi=4100.0)
    assert window.smoothed is not None
    np.testing.assert_allclose(window.smoothed.y, whole[window.smoothed.step], rtol=1e-11)


def test_superseded_points_come_as_ghosts_on_demand(run: Run) -> None:
    store(run, [float(i) for i in range(20)])
    supersede_after(run.pk, 2, 14)
    store(run, [0.5] * 6, attempt=2, first=15)
    assert curve(run).ghosts == ()
    (ghost,) = curve(run, superseded=True).ghosts
    assert (ghost.attempt, ghost.line.step.tolist()) == (1, [14, 15, 16, 17, 18, 19])
    assert ghost.line.y.tolist() == [14.0, 15.0, 16.0, 17.0, 18.0, 19.0]


def test_the_token_axis_is_the_runs_own_counter(run: Run) -> None:
    for step in range(1, 11):
        values = {"x": float(step), "num_tokens": step * 100.0}
        append_points(run.pk, 1, [MetricPoint(step, 0.0, values)])
    append_points(run.pk, 1, [MetricPoint(0, 0.0, {"eval/reward": 0.5})])
    got = curve(run, axis="tokens")
    assert got.line.x.tolist() == [step * 100.0 for step in range(1, 11)]
    assert curve(run, "eval/reward", axis="tokens").line.x.tolist() == [0.0]
    part = curve(run, axis="tokens", lo=450.0, hi=600.0)
    assert {500.0, 600.0} <= set(part.line.x.tolist())
    assert len(part.line.x) < 7
    missing = curve(run, axis="prompts")
    assert not missing.has_axis
    assert len(missing.line.x) == 0


def test_relative_time_leaves_out_pauses_and_undone_work(run: Run) -> None:
    def logged(attempt: int, steps: range, start: float) -> None:
        Attempt.objects.create(run=run, number=attempt, started_at=at(start))
        for i, step in enumerate(steps):
            append_points(run.pk, attempt, [MetricPoint(step, start + 10 * (i + 1), {"x": 1.0})])

    def at(t: float) -> datetime:
        return datetime.fromtimestamp(t, UTC)

    logged(1, range(1, 6), 1000.0)  # steps 1..5 at 1010..1050
    supersede_after(run.pk, 2, 3)
    logged(2, range(4, 7), 9000.0)  # steps 4..6 at 9010..9030
    got = curve(run, axis="relative")
    assert got.line.step.tolist() == [1, 2, 3, 4, 5, 6]
    assert got.line.x.tolist() == pytest.approx([10, 20, 30, 40, 50, 60])
    wall = curve(run, axis="wall", lo=9_010_000.0, hi=9_020_000.0)
    assert {9_010_000.0, 9_020_000.0} <= set(wall.line.x.tolist())


def test_many_runs_and_keys_take_no_more_queries_than_one(make_run: Callable[..., Run]) -> None:
    runs = [make_run() for _ in range(6)]
    keys = tuple(f"k{i}" for i in range(5))
    for run in runs:
        for key in keys:
            store(run, [1.0] * 40, key=key)
            store(run, [1.0] * 2000, key=key, first=50)
    few, many = (
        len(queries_of(CurveQuery(tuple(run.pk for run in chosen), keys)))
        for chosen in (runs[:1], runs)
    )
    assert many == few


def queries_of(query: CurveQuery) -> CaptureQueriesContext:
    with CaptureQueriesContext(connection) as queries:
        assert len(read_curves(query).curves) == len(query.run_ids) * len(query.keys)
    return queries


def test_rewritten_points_are_counted(run: Run) -> None:
    store(run, [1.0] * 10)
    store(run, [2.0] * 10)
    assert MetricSeries.objects.get().rewritten == 10
