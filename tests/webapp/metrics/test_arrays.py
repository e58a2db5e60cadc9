from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from webapp.metrics.arrays import (
    BUCKET,
    POINT,
    Structured,
    combine,
    merge_points,
    points_as_buckets,
)
from webapp.metrics.codec import pack, unpack
from webapp.metrics.thinning import cover

ANY = st.floats(allow_nan=True, allow_infinity=True)
INT64 = st.integers(-(2**63), 2**63 - 1)


def make_points(values: list[float], steps: list[int] | None = None) -> Structured:
    points = np.zeros(len(values), POINT)
    points["step"] = range(len(values)) if steps is None else steps
    points["t"] = points["step"] * 1000
    points["value"] = values
    return points


@given(st.lists(st.tuples(INT64, INT64, ANY, INT64), max_size=50), st.booleans())
def test_packing_is_exact(rows: list[tuple[int, int, float, int]], compact: bool) -> None:
    array = np.array(rows, POINT)
    back = unpack(pack(array, compact=compact), POINT, len(rows))
    assert back.tobytes() == array.tobytes()


def test_broken_bytes_are_refused() -> None:
    with pytest.raises(ValueError, match="unknown form"):
        unpack(b"\x00" + bytes(64), POINT, 2)
    packed = pack(make_points([1.0, 2.0]), compact=False)
    with pytest.raises(ValueError, match="bytes"):
        unpack(packed[:-1], POINT, 2)


def test_regular_series_pack_small() -> None:
    rng = np.random.default_rng(0)
    points = make_points(rng.normal(size=1024).astype(np.float32).astype(float).tolist())
    assert len(pack(points, compact=True)) / 1024 < 5


@given(st.lists(ANY, min_size=1, max_size=80), st.integers(1, 20), st.integers(1, 4))
def test_buckets_keep_extremes_ends_and_bad_values(
    values: list[float], size: int, again: int
) -> None:
    buckets = combine(combine(points_as_buckets(make_points(values)), size), again)
    wide = size * again
    for i, bucket in enumerate(buckets):
        part = values[i * wide : (i + 1) * wide]
        finite = [(v, i * wide + k) for k, v in enumerate(part) if math.isfinite(v)]
        assert bucket["n"] == len(part)
        assert (bucket["lo_step"], bucket["hi_step"]) == (i * wide, i * wide + len(part) - 1)
        assert bucket["finite"] == len(finite)
        assert bucket["nan_n"] == sum(math.isnan(v) for v in part)
        assert bucket["inf_n"] == part.count(math.inf)
        assert bucket["ninf_n"] == part.count(-math.inf)
        if bucket["inf_n"]:
            assert bucket["inf_step"] == i * wide + part.index(math.inf)
        if finite:
            assert bucket["min"] == min(v for v, _ in finite)
            assert bucket["max"] == max(v for v, _ in finite)
            assert values[bucket["min_step"]] == bucket["min"]
            assert values[bucket["max_step"]] == bucket["max"]
            assert (bucket["first"], bucket["first_step"]) == finite[0]
            assert (bucket["last"], bucket["last_step"]) == finite[-1]
            assert bucket["max_t"] == bucket["max_step"] * 1000


def test_the_mean_counts_finite_values_once_each() -> None:
    buckets = points_as_buckets(make_points([1.0, math.nan, 2.0, 6.0, math.inf]))
    assert combine(combine(buckets, 2), 3)["mean"][0] == pytest.approx(3.0)
    assert combine(points_as_buckets(make_points([1.7e308, 1.7e308])), 2)["mean"][0] == 1.7e308


def test_packing_buckets_is_exact() -> None:
    buckets = combine(points_as_buckets(make_points([1.0, math.nan, 3.0, -math.inf])), 2)
    assert unpack(pack(buckets, compact=True), BUCKET, 2).tobytes() == buckets.tobytes()


@given(
    st.lists(st.integers(0, 20), unique=True, max_size=15),
    st.lists(st.integers(0, 20), max_size=15),
)
def test_merging_lets_the_later_entry_win(old: list[int], new: list[int]) -> None:
    a = make_points([float(s) for s in old], old)
    b = make_points([100.0 + i for i in range(len(new))], new)
    b["version"] = 1
    merged = merge_points(merge_points(a[:0], a), b)
    expected = {s: float(s) for s in old} | {s: 100.0 + i for i, s in enumerate(new)}
    assert merged["step"].tolist() == sorted(expected)
    assert merged["value"].tolist() == [expected[s] for s in sorted(expected)]


def test_an_entry_that_repeats_another_keeps_its_version() -> None:
    old, same, other = (
        make_points([1.0, math.nan]),
        make_points([1.0, math.nan]),
        make_points([2.0]),
    )
    same["version"] = other["version"] = 7
    assert merge_points(old, same)["version"].tolist() == [0, 0]
    assert merge_points(old, other)["version"].tolist() == [7, 0]


@given(st.integers(0, 5000), st.integers(0, 5000), st.integers(0, 3))
def test_covers_are_whole_and_in_order(lo: int, length: int, level: int) -> None:
    at = lo
    for covers in cover(lo, lo + length, level):
        begin = at
        for part in covers:
            unit = 16**part.level
            assert part.lo * unit == at
            assert part.hi > part.lo
            at = part.hi * unit
        if covers[0].level != level:
            assert at - begin < 16**level
    assert at == lo + length
