"""Thinning: which stored entries stand for a stretch of points, and which points to draw of them.

Pure; used by `read`. Up to the budget every point is drawn. Beyond it the stretch is divided into
budget / 4 groups and of each its first, lowest, highest and last point are drawn, each at its own
place, so that the drawing shows every extreme. Non-finite values are drawn on top of the budget.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from webapp.metrics.arrays import (
    FANOUT,
    KINDS,
    PLACES,
    Structured,
    combine,
    count_nonfinite,
    points_as_buckets,
)

NONFINITE = {"nan": math.nan, "inf": math.inf, "ninf": -math.inf}
PLACES_DRAWN = len(PLACES)


class Drawn(NamedTuple):
    """Points to draw, in order of their steps inside each attempt."""

    step: NDArray[np.int64]
    t: NDArray[np.int64]
    """Microseconds since 1970."""
    value: NDArray[np.float64]
    bad: int
    """Non-finite values in the stretch, drawn or not."""


class Cover(NamedTuple):
    """Entries [lo, hi) of one level."""

    level: int
    lo: int
    hi: int


def groups_for(budget: int) -> int:
    """How many groups fit a budget of points."""
    return max(1, budget // PLACES_DRAWN)


def level_for(n: int, budget: int) -> int:
    """The highest level that has at least as many buckets as there are groups."""
    level = 0
    while n > budget and n // FANOUT ** (level + 1) >= groups_for(budget):
        level += 1
    return level


def cover(lo: int, hi: int, level: int) -> Iterator[list[Cover]]:
    """Stored entries that make up points [lo, hi): whole buckets of the level, finer ones around.

    Yields lists of neighbouring covers; each list but the one of whole buckets spans less than one
    bucket of the level.
    """
    unit = FANOUT**level
    first, end = -(-lo // unit), hi // unit
    if first < end:
        edges = ((lo, first * unit), (end * unit, hi))
    else:
        boundary = min(max(lo, first * unit), hi)
        edges = ((lo, boundary), (boundary, hi))
    if edges[0][0] < edges[0][1]:
        yield list(_fine(*edges[0], level - 1))
    if first < end:
        yield [Cover(level, first, end)]
    if edges[1][0] < edges[1][1]:
        yield list(_fine(*edges[1], level - 1))


def _fine(lo: int, hi: int, level: int) -> Iterator[Cover]:
    """Entries of a level and below that make up points [lo, hi) exactly, in order."""
    if hi <= lo:
        return
    unit = FANOUT**level
    first, end = -(-lo // unit), hi // unit
    if first >= end:
        yield from _fine(lo, hi, level - 1)
        return
    yield from _fine(lo, first * unit, level - 1)
    yield Cover(level, first, end)
    yield from _fine(end * unit, hi, level - 1)


def group(buckets: Structured, budget: int) -> Structured:
    """Buckets combined until they fit a budget of points."""
    return combine(buckets, max(1, -(-len(buckets) // groups_for(budget))))


def draw_points(points: Structured) -> Drawn:
    """Every point."""
    bad = int((~np.isfinite(points["value"])).sum())
    return Drawn(points["step"], points["t"], points["value"], bad)


def draw_buckets(buckets: Structured) -> Drawn:
    """First, lowest, highest, last and the first of each kind of non-finite value of each."""
    bucket = np.arange(len(buckets))
    parts = [
        (bucket, buckets[f"{p}_step"], buckets[f"{p}_t"], buckets[p], buckets["finite"] > 0)
        for p in PLACES
    ]
    for kind in KINDS:
        value = np.full(len(buckets), NONFINITE[kind])
        there = buckets[f"{kind}_n"] > 0
        parts.append((bucket, buckets[f"{kind}_step"], buckets[f"{kind}_t"], value, there))
    there = np.concatenate([part[4] for part in parts])
    index, step, t, value = (np.concatenate([p[i] for p in parts])[there] for i in range(4))
    order = np.lexsort((step, index))
    index, step, t, value = index[order], step[order], t[order], value[order]
    fresh = np.ones(len(step), bool)
    fresh[1:] = (step[1:] != step[:-1]) | (index[1:] != index[:-1])
    return Drawn(step[fresh], t[fresh], value[fresh], count_nonfinite(buckets))


def draw_smoothed(points: Structured, smoothed: NDArray[np.float64], budget: int) -> Drawn:
    """The smoothed values of points: all, or of each group the one nearest to the group's mean.

    Each is the exact smoothed value of its step; the extremes are those of the band, not of this
    line, whose purpose is the trend.
    """
    replaced = points.copy()
    replaced["value"] = smoothed
    if len(points) <= budget:
        return draw_points(replaced)
    size = max(1, -(-len(points) // groups_for(budget)))
    return draw_points(replaced[_typical(smoothed, size)])


def _typical(values: NDArray[np.float64], size: int) -> NDArray[np.int64]:
    """Places of the value nearest to the mean of every `size` values, and of the first non-finite
    one among them, where the drawn line breaks."""
    groups = -(-len(values) // size)
    start = np.arange(groups) * size
    padded = np.full(groups * size, values[-1])
    padded[: len(values)] = values
    table = padded.reshape(groups, size)
    finite = np.isfinite(table)
    known = np.where(finite, table, 0.0)
    mean = (known / np.maximum(finite.sum(axis=1, keepdims=True), 1)).sum(axis=1, keepdims=True)
    nearest = np.argmin(np.where(finite, np.abs(known - mean), np.inf), axis=1)
    broken = (start + np.argmin(finite, axis=1))[~finite.all(axis=1)]
    places: NDArray[np.int64] = np.unique(np.concatenate([start + nearest, broken]))
    return places[places < len(values)]


def as_buckets(level: int, entries: Structured) -> Structured:
    """Entries of any level as buckets."""
    return points_as_buckets(entries) if level == 0 else entries
