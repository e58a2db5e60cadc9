from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from webapp.metrics.smoothing import reach, smooth

VALUES = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e6, max_value=1e6)
ANY = st.floats(allow_nan=True, allow_infinity=True)
WEIGHTS = st.sampled_from([0.0, 0.1, 0.5, 0.6, 0.9, 0.99, 0.999])


def closed_form(values: list[float], w: float) -> list[float]:
    """sum w^(i-k) x_k / sum w^(i-k) over the finite values so far, with exact sums."""
    out, seen = [], []
    for value in values:
        if not math.isfinite(value):
            out.append(value)
            continue
        seen.append(value)
        weights = [w ** (len(seen) - 1 - k) for k in range(len(seen))]
        total = math.fsum(a * x for a, x in zip(weights, seen, strict=True))
        out.append(total / math.fsum(weights))
    return out


@given(st.lists(VALUES, max_size=300), WEIGHTS)
def test_equals_the_closed_form(values: list[float], w: float) -> None:
    got = smooth(np.array(values), w)
    want = closed_form(values, w)
    scale = max(map(abs, values), default=0.0)
    np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-13 * scale)


def test_the_weight_is_that_of_the_past() -> None:
    assert smooth(np.array([0.0, 1.0]), 0.9)[1] == pytest.approx(0.1 / (0.1 + 0.09))


@given(ANY.filter(math.isfinite), st.integers(1, 500), WEIGHTS)
@example(1.7e308, 300, 0.999)
@example(5e-324, 300, 0.6)
def test_a_constant_stays_itself_exactly(value: float, n: int, w: float) -> None:
    assert (smooth(np.full(n, value), w) == value).all()


@given(st.lists(ANY, min_size=1, max_size=300), st.lists(ANY, max_size=300), WEIGHTS)
def test_appending_never_changes_what_is_smoothed_already(
    values: list[float], more: list[float], w: float
) -> None:
    before = smooth(np.array(values), w)
    after = smooth(np.array(values + more), w)[: len(values)]
    if max(map(abs, filter(math.isfinite, values + more)), default=0.0) < 1e300:
        assert before.tobytes() == after.tobytes()
    else:
        np.testing.assert_allclose(before, after, rtol=1e-12)


@given(st.lists(ANY, max_size=200), WEIGHTS)
def test_non_finite_values_stay_where_they_are(values: list[float], w: float) -> None:
    got = smooth(np.array(values), w)
    for value, smoothed in zip(values, got, strict=True):
        assert math.isfinite(smoothed) == math.isfinite(value)
        assert math.isfinite(value) or np.array_equal(value, smoothed, equal_nan=True)


@pytest.mark.parametrize("w", [0.5, 0.6, 0.9, 0.99])
def test_values_beyond_its_reach_do_not_count(w: float) -> None:
    values = np.random.default_rng(1).normal(size=20_000)
    whole = smooth(values, w)[-10:]
    part = smooth(values[-10 - reach(w) :], w)[-10:]
    np.testing.assert_allclose(part, whole, rtol=1e-12, atol=1e-15)


def test_small_changes_on_a_large_offset_survive() -> None:
    values = 1e9 + np.tile([0.0, 1e-6], 500)
    got = smooth(values, 0.9)
    assert abs(got[-1] - 1e9 - 0.5e-6) < 3e-7
