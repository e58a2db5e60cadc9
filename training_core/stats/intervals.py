"""Confidence intervals for evaluations: Wilson for shares, bootstrap for means and differences.

Called by `training_core.evaluate` and by statistics tasks. Deterministic: the same values and seed
give the same interval on every machine with the same numpy. Items are the unit that is resampled:
several completions of one prompt are first averaged, then passed in as one value.

Degenerate input keeps its truth: no items give NaN, one item gives an interval of NaN, equal values
give an interval of no width (n says how little that may mean), and a value that is not finite makes
the interval NaN instead of being left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from training_core.contract.events import Interval

RESAMPLES = 4_000
CONFIDENCE = 0.95
CHUNK_ELEMENTS = 2_000_000
MAX_DISTINCT = 32
TINY = 1e-100
TIE = 1e-9
_NORMAL = NormalDist()

Values = Sequence[float] | NDArray[np.float64]


def wilson_interval(successes: float, n: int, confidence: float = CONFIDENCE) -> Interval:
    """Share of successes with Wilson's score interval (Wilson 1927).

    centre = (p + z^2 / 2n) / (1 + z^2 / n)
    half   = z sqrt(p (1 - p) / n + z^2 / 4n^2) / (1 + z^2 / n)

    Successes need not be whole: with several completions of each item, pass the sum of the items'
    shares. Without items the share is NaN and the interval is [0, 1].
    """
    if n < 0 or not 0 <= successes <= n:
        raise ValueError(f"{successes} successes among {n} items make no share")
    if n == 0:
        return Interval(value=math.nan, low=0.0, high=1.0, n=0)
    z = _NORMAL.inv_cdf(0.5 + confidence / 2)
    share = successes / n
    scale = 1 + z * z / n
    centre = (share + z * z / (2 * n)) / scale
    half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / scale
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == n else min(1.0, centre + half)
    return Interval(value=share, low=low, high=high, n=n)


def bootstrap_mean(
    values: Values, seed: int = 0, resamples: int = RESAMPLES, confidence: float = CONFIDENCE
) -> Interval:
    """Mean with its BCa bootstrap interval (Efron 1987) over items.

    Shapes: values (N,). The interval's ends are the quantiles of the resampled means at
    Phi(z0 + (z0 + z) / (1 - a (z0 + z))), z0 the median bias and a the acceleration.
    """
    items = np.asarray(values, dtype=np.float64)
    if items.ndim != 1:
        raise ValueError(f"one value for each item is needed, not an array of shape {items.shape}")
    n = len(items)
    if n == 0:
        return Interval(value=math.nan, low=math.nan, high=math.nan, n=0)
    if not np.isfinite(items).all():
        return Interval(value=float(items.mean()), low=math.nan, high=math.nan, n=n)
    mean = math.fsum(items) / n
    if n == 1:
        return Interval(value=mean, low=math.nan, high=math.nan, n=1)
    if items.min() == items.max():
        return Interval(value=float(items[0]), low=float(items[0]), high=float(items[0]), n=n)
    means = _resampled_means(items, seed, resamples)
    low, high = _bca_ends(items, means, confidence)
    return Interval(value=mean, low=low, high=high, n=n)


def paired_bootstrap(
    before: Values,
    after: Values,
    seed: int = 0,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
) -> Interval:
    """Mean of after - before on the same items, with its BCa bootstrap interval.

    Shapes: before (N,), after (N,), in the same order of items. Raises ValueError when the lengths
    differ: two evaluations of different items cannot be paired.
    """
    if len(before) != len(after):
        raise ValueError(f"{len(before)} and {len(after)} items cannot be paired")
    difference = np.asarray(after, dtype=np.float64) - np.asarray(before, dtype=np.float64)
    return bootstrap_mean(difference, seed=seed, resamples=resamples, confidence=confidence)


def _resampled_means(items: NDArray[np.float64], seed: int, resamples: int) -> NDArray[np.float64]:
    """Means of resamples with replacement. Shape (resamples,).

    With few distinct values, as most rewards have, only their counts are drawn: the same law at a
    fraction of the time. Otherwise items are drawn, in chunks of bounded memory.
    """
    rng = np.random.default_rng(seed)
    n = len(items)
    distinct, counts = np.unique(items, return_counts=True)
    if len(distinct) <= MAX_DISTINCT:
        drawn = rng.multinomial(n, counts / n, size=resamples)
        return np.asarray(drawn @ distinct / n, dtype=np.float64)
    rows = max(1, CHUNK_ELEMENTS // n)
    chunks = [
        items[rng.integers(0, n, size=(min(rows, resamples - start), n))].mean(axis=1)
        for start in range(0, resamples, rows)
    ]
    return np.concatenate(chunks)


def _bca_ends(
    items: NDArray[np.float64], means: NDArray[np.float64], confidence: float
) -> tuple[float, float]:
    """Bias-corrected and accelerated ends.

    The jackknife of a mean needs no loop: leaving out item i moves the mean by (mean - x_i)/(N-1),
    so a = sum((x - mean)^3) / (6 sum((x - mean)^2)^1.5).
    """
    mean = items.mean()
    tie = TIE * (items.max() - items.min())  # sums of the same items differ by rounding alone
    at_most = np.count_nonzero(means <= mean + tie)
    below = (np.count_nonzero(means < mean - tie) + at_most) / (2 * len(means))
    if not 0 < below < 1:
        return float(means.min()), float(means.max())
    bias = _NORMAL.inv_cdf(below)
    deviations = items - mean
    largest = float(np.abs(deviations).max())
    if 0 < largest < TINY:  # the acceleration has no scale, and the powers below would be 0
        deviations = deviations / largest
    spread = float(np.square(deviations).sum())
    acceleration = float((deviations**3).sum()) / (6 * spread**1.5) if spread > 0 else 0.0
    tail = (1 - confidence) / 2
    shares = []
    for share in (tail, 1 - tail):
        z = bias + _NORMAL.inv_cdf(share)
        shares.append(_NORMAL.cdf(bias + z / (1 - acceleration * z)))
    low, high = np.quantile(means, shares)
    return float(low), float(high)
