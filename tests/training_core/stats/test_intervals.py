from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from training_core.contract.events import Interval
from training_core.stats import intervals
from training_core.stats.intervals import bootstrap_mean, paired_bootstrap, wilson_interval


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [
        # Newcombe 1998, Statistics in Medicine 17:857, table I, method 3.
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0000, 0.1611),
        (1, 29, 0.0061, 0.1718),
        # Mirror image.
        (20, 20, 0.8389, 1.0000),
    ],
)
def test_wilson_against_published_values(successes: int, n: int, low: float, high: float) -> None:
    interval = wilson_interval(successes, n)
    assert interval.low == pytest.approx(low, abs=5e-5)
    assert interval.high == pytest.approx(high, abs=5e-5)
    assert interval.value == successes / n
    assert interval.n == n


@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_against_scipy(case: tuple[int, int]) -> None:
    successes, n = case
    ours = wilson_interval(successes, n)
    theirs = stats.binomtest(successes, n).proportion_ci(0.95, method="wilson")
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=1e-12)
    assert 0 <= ours.low <= ours.value <= ours.high <= 1


def test_wilson_without_items_knows_nothing() -> None:
    interval = wilson_interval(0, 0)
    assert math.isnan(interval.value)
    assert (interval.low, interval.high, interval.n) == (0.0, 1.0, 0)


def test_wilson_takes_shares_of_items() -> None:
    assert wilson_interval(2.5, 5).value == 0.5
    for successes, n in ((-1, 5), (6, 5), (0, -1), (math.nan, 5)):
        with pytest.raises(ValueError, match="make no share"):
            wilson_interval(successes, n)


@pytest.mark.parametrize(
    "values",
    [
        np.random.default_rng(0).exponential(size=40),
        np.random.default_rng(1).normal(size=200) ** 3,
        np.random.default_rng(2).integers(0, 2, size=96).astype(float),
        np.random.default_rng(3).choice([-1.0, 0.0, 0.0, 1.0], size=64),
        np.random.default_rng(3).lognormal(sigma=1.2, size=12),  # median bias z0 = 0.15
    ],
    ids=["exponential", "heavy tails", "binary", "paired differences", "few and skewed"],
)
def test_bootstrap_against_scipy(values: np.ndarray) -> None:
    ours = bootstrap_mean(values, resamples=20_000)
    theirs = stats.bootstrap(
        (values,), np.mean, n_resamples=20_000, method="BCa", rng=np.random.default_rng(9)
    ).confidence_interval
    near = 0.06 * (theirs.high - theirs.low)  # a little more than one step of the binary grid
    assert ours.value == pytest.approx(values.mean(), abs=1e-12)
    assert ours.low == pytest.approx(theirs.low, abs=near)
    assert ours.high == pytest.approx(theirs.high, abs=near)


def test_skewed_values_get_a_skewed_interval() -> None:
    """What BCa adds to the percentile method, whose interval lies lower for such values."""
    interval = bootstrap_mean([0.0] * 36 + [1.0] * 4)
    assert interval.high - interval.value > 1.2 * (interval.value - interval.low)


def test_degenerate_input_keeps_its_truth() -> None:
    nothing = bootstrap_mean([])
    assert nothing.n == 0
    assert all(map(math.isnan, (nothing.value, nothing.low, nothing.high)))
    one = bootstrap_mean([0.25])
    assert (one.value, one.n) == (0.25, 1)
    assert math.isnan(one.low)
    assert math.isnan(one.high)
    assert bootstrap_mean([0.1] * 7) == Interval(value=0.1, low=0.1, high=0.1, n=7)
    for bad in (math.nan, math.inf, -math.inf):
        spoilt = bootstrap_mean([0.0, 1.0, bad])
        assert not math.isfinite(spoilt.value)
        assert math.isnan(spoilt.low)
        assert spoilt.n == 3


def test_several_values_for_an_item_are_refused() -> None:
    with pytest.raises(ValueError, match="one value for each item"):
        bootstrap_mean(np.zeros((3, 2)))  # type: ignore[arg-type]


@settings(deadline=None, max_examples=50)
@given(st.lists(st.floats(-100, 100), min_size=2, max_size=30), st.integers(0, 99))
def test_the_interval_holds_the_mean_and_repeats(values: list[float], seed: int) -> None:
    interval = bootstrap_mean(values, seed, resamples=500)
    assert interval == bootstrap_mean(values, seed, resamples=500)
    assert min(values) - 1e-9 <= interval.low <= interval.high <= max(values) + 1e-9
    assert interval.low - 1e-9 <= interval.value <= interval.high + 1e-9


def test_tiny_differences_have_ends_too() -> None:
    tiny = bootstrap_mean([0.0, 1e-200, 3e-200, 0.0], 1, resamples=500)
    small = bootstrap_mean([0.0, 1e-3, 3e-3, 0.0], 1, resamples=500)
    assert tiny.low * 1e197 == pytest.approx(small.low)
    assert tiny.high * 1e197 == pytest.approx(small.high)


def test_the_seed_matters_only_a_little() -> None:
    values = np.random.default_rng(0).normal(size=100)
    ends = [bootstrap_mean(values, seed) for seed in range(5)]
    assert len({end.low for end in ends}) == 5
    assert max(end.low for end in ends) - min(end.low for end in ends) < 0.03


def test_chunks_change_nothing_but_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    values = list(np.random.default_rng(0).normal(size=50))
    whole = bootstrap_mean(values)
    monkeypatch.setattr(intervals, "CHUNK_ELEMENTS", 50 * 7)
    assert bootstrap_mean(values) == whole


def test_paired_differences() -> None:
    before = [0.0] * 50 + [1.0] * 50
    after = [0.0] * 30 + [1.0] * 70
    interval = paired_bootstrap(before, after)
    assert interval.value == pytest.approx(0.2)
    assert interval.low > 0
    assert interval.n == 100
    back = paired_bootstrap(after, before)
    assert back.value == -interval.value
    assert back.high < 0
    assert paired_bootstrap(before, before) == Interval(value=0.0, low=0.0, high=0.0, n=100)


def test_pairing_removes_what_the_items_have_in_common() -> None:
    hard = np.random.default_rng(0).normal(size=60) * 10
    gain = np.random.default_rng(1).normal(loc=1.0, size=60)
    paired = paired_bootstrap(hard, hard + gain)
    apart = bootstrap_mean(hard + gain)
    assert paired.high - paired.low < 0.2 * (apart.high - apart.low)


def test_different_items_cannot_be_paired() -> None:
    with pytest.raises(ValueError, match="3 and 2 items cannot be paired"):
        paired_bootstrap([1.0, 2.0, 3.0], [1.0, 2.0])


@pytest.mark.parametrize("n", [30, 96])
def test_coverage_of_paired_differences(n: int) -> None:
    """Of 400 intervals about 95 in 100 hold the truth: changes of +1, 0, -1 with a mean of 0.1."""
    rng = np.random.default_rng(n)
    hits = 0
    for seed in range(400):
        change = rng.choice([1.0, 0.0, -1.0], p=[0.2, 0.7, 0.1], size=n)
        interval = paired_bootstrap(np.zeros(n), change, seed=seed, resamples=1_000)
        hits += interval.low <= 0.1 <= interval.high
    assert 0.91 <= hits / 400 <= 0.985


def test_coverage_of_wilson() -> None:
    rng = np.random.default_rng(0)
    for share in (0.02, 0.3, 0.9):
        draws = rng.binomial(64, share, size=2_000)
        held = [(i := wilson_interval(int(k), 64)).low <= share <= i.high for k in draws]
        assert 0.92 <= np.mean(held) <= 0.99
