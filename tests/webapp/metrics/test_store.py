from __future__ import annotations

import math
import threading
import unicodedata
from collections.abc import Callable

import numpy as np
import pytest
from django.db import connection, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.webapp.metrics.model import PlainStore, bits
from webapp.metrics import pyramid, services, snapshot, tail
from webapp.metrics.arrays import Structured, combine, points_as_buckets
from webapp.metrics.codec import unpack
from webapp.metrics.models import (
    MetricChunk,
    MetricCut,
    MetricHead,
    MetricSegment,
    MetricSeries,
    MetricTail,
)
from webapp.metrics.read import read_series
from webapp.metrics.services import MetricPoint, append_points, supersede_after
from webapp.runs.models import Run

ANY = st.floats(allow_nan=True, allow_infinity=True)
KEYS = ["loss", "eval/pass@1"]
STEPS = st.integers(0, 60)
VALUES = st.dictionaries(st.sampled_from(KEYS), ANY, min_size=1)
BATCH = st.lists(st.builds(MetricPoint, STEPS, st.floats(0, 1e9), VALUES), max_size=12)
WRITES = st.lists(st.tuples(st.integers(1, 3), BATCH), max_size=12)
DB_RUNS = settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
pytestmark = pytest.mark.django_db


def climb(run: Run, steps: range, attempt: int = 1, key: str = "loss", batch: int = 1) -> None:
    """Append value = step, `batch` steps a call."""
    for i in range(0, len(steps), batch):
        points = [MetricPoint(s, 100.0 + s, {key: float(s)}) for s in steps[i : i + batch]]
        append_points(run.pk, attempt, points)


@DB_RUNS
@given(WRITES, st.dictionaries(st.integers(2, 3), STEPS, max_size=2), st.booleans())
def test_any_writes_read_back_as_from_a_plain_store(
    make_run: Callable[..., Run],
    small_chunks: None,
    writes: list[tuple[int, list[MetricPoint]]],
    cuts: dict[int, int],
    repeat: bool,
) -> None:
    run, model = make_run(), PlainStore()
    for attempt, points in writes:
        append_points(run.pk, attempt, points)
        if repeat:
            append_points(run.pk, attempt, points)
        model.append(attempt, points)
    for attempt, step in cuts.items():
        supersede_after(run.pk, attempt, step)
        model.supersede(attempt, step)
    for key in KEYS:
        assert bits(read_series(run.pk, key)) == bits(model.live(key))


@pytest.mark.parametrize("batch", [1, 7, 5000])
def test_long_series_survive_whole(run: Run, small_chunks: None, batch: int) -> None:
    n = 5000 if batch == 5000 else 600
    climb(run, range(n), batch=batch)
    assert read_series(run.pk, "loss") == [(s, float(s)) for s in range(n)]


def test_nan_infinities_and_edge_numbers_round_trip(run: Run) -> None:
    odd = [math.nan, math.inf, -math.inf, -0.0, 5e-324, 1.797e308, 2.0**53 + 2]
    append_points(run.pk, 1, [MetricPoint(i, 0.0, {"x": v}) for i, v in enumerate(odd)])
    assert bits(read_series(run.pk, "x")) == [(i, v.hex()) for i, v in enumerate(odd)]


def test_repeating_a_write_changes_nothing_at_all(run: Run, small_chunks: None) -> None:
    climb(run, range(100))
    before = list(MetricChunk.objects.order_by("pk").values())
    series = MetricSeries.objects.get()
    climb(run, range(50, 90))
    services._flush(services.lock_head(run.pk))
    climb(run, range(100))
    assert list(MetricChunk.objects.order_by("pk").values())[: len(before) - 1] == before[:-1]
    assert MetricSeries.objects.get().changed_version == series.changed_version
    assert read_series(run.pk, "loss") == [(s, float(s)) for s in range(100)]


def test_a_later_value_wins_and_is_counted(run: Run, small_chunks: None) -> None:
    climb(run, range(100))
    append_points(run.pk, 1, [MetricPoint(40, 0.0, {"loss": -1.0})])
    assert dict(read_series(run.pk, "loss"))[40] == -1.0
    assert MetricSeries.objects.get().rewritten == 1


def test_a_late_point_finds_its_place(run: Run, small_chunks: None) -> None:
    climb(run, range(0, 120, 2))
    climb(run, range(119, 0, -2))
    assert read_series(run.pk, "loss") == [(s, float(s)) for s in range(120)]


def test_five_resumes_in_a_row_leave_one_continuous_line(run: Run, small_chunks: None) -> None:
    for attempt, start in enumerate([0, 50, 40, 60, 60, 10], start=1):
        supersede_after(run.pk, attempt, start)
        climb(run, range(start + 1, start + 70), attempt=attempt)
    assert [step for step, _ in read_series(run.pk, "loss")] == list(range(1, 80))


def test_an_evaluation_repeated_at_the_resumed_step_is_shown_once(run: Run) -> None:
    append_points(run.pk, 1, [MetricPoint(s, 0.0, {"eval/reward": 0.1}) for s in (0, 10, 20)])
    supersede_after(run.pk, 2, 10)
    append_points(run.pk, 2, [MetricPoint(10, 0.0, {"eval/reward": 0.5})])
    assert read_series(run.pk, "eval/reward") == [(0, 0.1), (10, 0.5)]


def test_one_write_takes_four_queries(run: Run, django_assert_num_queries: object) -> None:
    values = {f"k{i}": 1.0 for i in range(30)}
    append_points(run.pk, 1, [MetricPoint(1, 0.0, values)])
    with django_assert_num_queries(4):  # type: ignore[operator]
        append_points(run.pk, 1, [MetricPoint(2, 1.0, values)])


def test_rows_do_not_grow_with_points(run: Run) -> None:
    climb(run, range(20_000), batch=5000)
    rows = sum(m.objects.count() for m in (MetricChunk, MetricSegment, MetricTail))
    assert rows < 20_000 / 300


def test_a_point_costs_little_space(run: Run) -> None:
    points = [MetricPoint(s, 1.7e9 + s * 1.01, {"a": math.sin(s) / 3}) for s in range(16_384)]
    append_points(run.pk, 1, points)
    size = sum(len(c.packed) for c in MetricChunk.objects.all())
    assert size / len(points) < 14


@pytest.mark.parametrize(
    "key",
    ["", "a\x00b", "a\nb", "k" * 256, "\ud800"],
    ids=["empty", "nul", "newline", "long", "surrogate"],
)
def test_an_unusable_name_is_refused_counted_and_hurts_nothing_else(run: Run, key: str) -> None:
    append_points(run.pk, 1, [MetricPoint(1, 0.0, {key: 1.0, "loss": 2.0})])
    assert read_series(run.pk, "loss") == [(1, 2.0)]
    assert MetricHead.objects.get().refused == 1


@pytest.mark.parametrize(
    "key",
    [
        "val-aux/gsm8k/reward/mean@1",
        "timing(s)/gen",
        "..",
        "100%",
        "<b>x</b>",
        "{{ 7*7 }}",
        "a//b",
        "'; drop table",
        "奖励/正确率",
        "مكافأة",
        "👩‍👩‍👧",
        "k" * 255,
        "Loss",
    ],
)
def test_any_other_name_works(run: Run, key: str) -> None:
    append_points(run.pk, 1, [MetricPoint(1, 0.0, {key: 1.0, "loss": 2.0})])
    assert read_series(run.pk, key) == [(1, 1.0)]


def test_one_name_in_two_unicode_forms_is_one_series(run: Run) -> None:
    for step, form in enumerate(("NFC", "NFD")):
        key = unicodedata.normalize(form, "précis")
        append_points(run.pk, 1, [MetricPoint(step, 0.0, {key: 1.0})])
    assert read_series(run.pk, "précis") == [(0, 1.0), (1, 1.0)]


def test_keys_beyond_the_limit_are_refused_and_counted(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "MAX_KEYS", 3)
    append_points(run.pk, 1, [MetricPoint(1, 0.0, {f"k{i}": 1.0 for i in range(5)})])
    assert MetricSeries.objects.count() == 3
    assert MetricHead.objects.get().refused == 2


def test_odd_steps_and_times(run: Run) -> None:
    steps = [-5, 0, 1000, 2**48]
    times = [math.nan, math.inf, -1.0, 1.7e9]
    points = [MetricPoint(s, t, {"x": 1.0}) for s, t in zip(steps, times, strict=True)]
    append_points(run.pk, 1, [*points, MetricPoint(2**60, 0.0, {"x": 1.0})])
    assert [step for step, _ in read_series(run.pk, "x")] == steps
    assert MetricHead.objects.get().refused == 1


def test_deleting_a_run_leaves_other_runs_alone(make_run: Callable[..., Run]) -> None:
    gone, kept = make_run(), make_run()
    for run in (gone, kept):
        climb(run, range(3000), batch=1000)
        supersede_after(run.pk, 2, 2900)
        climb(run, range(2901, 2910), attempt=2)
    before = read_series(kept.pk, "loss")
    services.delete_run(gone.pk)
    assert read_series(kept.pk, "loss") == before
    assert not MetricSeries.objects.filter(run=gone).exists()
    assert not MetricCut.objects.filter(run=gone).exists()
    gone.delete()
    kept.delete()
    assert not MetricChunk.objects.exists()


def test_a_rolled_back_write_leaves_no_trace(run: Run) -> None:
    climb(run, range(10))
    with transaction.atomic():
        climb(run, range(10, 200), batch=10)
        supersede_after(run.pk, 2, 5)
        transaction.set_rollback(True)
    assert len(read_series(run.pk, "loss")) == 10


@DB_RUNS
@given(
    st.lists(st.integers(1, 400), min_size=1, max_size=5),
    st.lists(st.integers(0, 1500), max_size=3),
)
def test_every_level_sums_up_the_points_below(
    make_run: Callable[..., Run], small_chunks: None, sizes: list[int], late: list[int]
) -> None:
    run, first = make_run(), 0
    for size in sizes:
        climb(run, range(first, first + size), batch=size)
        first += size
    for step in late:
        append_points(run.pk, 1, [MetricPoint(step, 0.0, {"loss": -7.0})])
    services._flush(services.lock_head(run.pk))
    (segment,) = MetricSegment.objects.filter(series__run=run)
    expected, level = points_as_buckets(level_entries(segment, 0)), 0
    assert len(expected) == segment.n
    while len(expected) >= 16:
        level += 1
        expected = combine(expected[: len(expected) // 16 * 16], 16)
        assert level_entries(segment, level).tobytes() == expected.tobytes()
    assert not MetricChunk.objects.filter(segment=segment, level__gt=level).exists()


def level_entries(segment: MetricSegment, level: int) -> Structured:
    chunks = MetricChunk.objects.filter(segment=segment, level=level).order_by("index")
    dtype = pyramid.dtype_of(level)
    assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
    assert all(chunk.n == pyramid.capacity(level) for chunk in list(chunks)[:-1])
    return np.concatenate([unpack(chunk.packed, dtype, chunk.n) for chunk in chunks])


@pytest.mark.django_db(transaction=True)
def test_a_read_sees_one_moment_even_while_the_tail_moves_into_chunks(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    climb(run, range(20))

    def flush_first(*run_ids: object) -> object:
        def flush() -> None:
            climb(run, range(20, 120))
            connection.close()

        thread = threading.Thread(target=flush)
        thread.start()
        thread.join()
        return tail.load_tail(*run_ids)  # type: ignore[arg-type]

    monkeypatch.setattr(snapshot, "load_tail", flush_first)
    assert len(read_series(run.pk, "loss")) == 20
    monkeypatch.undo()
    assert len(read_series(run.pk, "loss")) == 120


@pytest.mark.django_db(transaction=True)
def test_writers_and_a_reader_at_once(run: Run) -> None:
    seen: list[int] = []
    torn: list[list[int]] = []
    done = threading.Event()

    def write(key: str) -> None:
        climb(run, range(150), key=key, batch=3)
        connection.close()

    def read() -> None:
        while not done.is_set():
            steps = [step for step, _ in read_series(run.pk, "a")]
            if steps != list(range(len(steps))):
                torn.append(steps)
            seen.append(len(steps))
        connection.close()

    reader = threading.Thread(target=read)
    writers = [threading.Thread(target=write, args=(key,)) for key in "abc"]
    for thread in [reader, *writers]:
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    reader.join()
    assert not torn
    assert seen == sorted(seen)
    assert len(set(seen)) > 3
    for key in "abc":
        assert read_series(run.pk, key) == [(s, float(s)) for s in range(150)]
