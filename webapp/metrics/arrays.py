"""Points and buckets: the two kinds of packed arrays, and how points become buckets.

Used by the writer (`pyramid`) and the reader (`read`). A bucket summarises neighbouring points:
exact extremes with their places, first, last and mean of the finite values, and the first place of
each kind of non-finite value, so that NaN and infinities stay visible at any zoom. Times are whole
microseconds since 1970: integers pack better and survive exactly.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Structured = NDArray[np.void]

FANOUT = 16
"""Entries of one level that make one bucket of the next."""

POINT = np.dtype([("step", "<i8"), ("t", "<i8"), ("value", "<f8"), ("version", "<i8")])

KINDS = ("nan", "inf", "ninf")
"""Kinds of non-finite values."""
PLACES = ("first", "last", "min", "max")
"""Finite values that a bucket keeps with step and time."""

BUCKET = np.dtype(
    [("n", "<i8"), ("finite", "<i8"), ("lo_step", "<i8"), ("hi_step", "<i8"), ("mean", "<f8")]
    + [
        (f"{place}{suffix}", kind)
        for place in PLACES
        for suffix, kind in (("_step", "<i8"), ("_t", "<i8"), ("", "<f8"))
    ]
    + [(f"{kind}_{suffix}", "<i8") for kind in KINDS for suffix in ("n", "step", "t")]
)


def empty_points() -> Structured:
    """No points."""
    return np.zeros(0, POINT)


def merge_points(old: Structured, new: Structured) -> Structured:
    """Both, sorted by step, each step once: the later entry wins.

    An entry that repeats the one before it keeps that one's version: nothing was written.
    """
    both = np.concatenate([old, new])
    both = both[np.argsort(both["step"], kind="stable")]
    earlier, later = both[:-1], both[1:]
    same_step = later["step"] == earlier["step"]
    repeats = same_step & (later["t"] == earlier["t"])
    repeats &= later["value"].view("<i8") == earlier["value"].view("<i8")
    later["version"] = np.where(repeats, earlier["version"], later["version"])
    kept: Structured = both[np.append(~same_step, np.ones(min(1, len(both)), bool))]
    return kept


def same_points(a: Structured, b: Structured) -> bool:
    """Whether step, time and value agree bit for bit; versions do not count."""
    return len(a) == len(b) and all(
        a[name].tobytes() == b[name].tobytes() for name in ("step", "t", "value")
    )


def points_as_buckets(points: Structured) -> Structured:
    """Each point as a bucket of one."""
    value = points["value"]
    finite = np.isfinite(value)
    out = np.zeros(len(points), BUCKET)
    out["n"] = 1
    out["finite"] = finite
    out["lo_step"] = out["hi_step"] = points["step"]
    for place in PLACES:
        out[f"{place}_step"] = points["step"]
        out[f"{place}_t"] = points["t"]
        out[place] = np.where(finite, value, 0.0)
    out["mean"] = out["first"]
    masks = {"nan": np.isnan(value), "inf": value == np.inf, "ninf": value == -np.inf}
    for kind, mask in masks.items():
        out[f"{kind}_n"] = mask
        out[f"{kind}_step"] = np.where(mask, points["step"], 0)
        out[f"{kind}_t"] = np.where(mask, points["t"], 0)
    return out


def combine(buckets: Structured, size: int) -> Structured:
    """Every `size` neighbouring buckets as one; the last may hold fewer."""
    if size == 1 or len(buckets) == 0:
        return buckets
    groups = -(-len(buckets) // size)
    padded = np.zeros(groups * size, BUCKET)
    padded[: len(buckets)] = buckets
    table = padded.reshape(groups, size)
    row = np.arange(groups)
    filled = table["n"] > 0
    finite = table["finite"] > 0
    last_filled = size - 1 - np.argmax(filled[:, ::-1], axis=1)

    out = np.zeros(groups, BUCKET)
    out["n"] = table["n"].sum(axis=1)
    out["finite"] = table["finite"].sum(axis=1)
    out["lo_step"] = table["lo_step"][:, 0]
    out["hi_step"] = table["hi_step"][row, last_filled]
    out["mean"] = _weighted_mean(table)
    picks = {
        "first": np.argmax(finite, axis=1),
        "last": size - 1 - np.argmax(finite[:, ::-1], axis=1),
        "min": np.argmin(np.where(finite, table["min"], np.inf), axis=1),
        "max": np.argmax(np.where(finite, table["max"], -np.inf), axis=1),
    }
    for place, column in picks.items():
        for name in (f"{place}_step", f"{place}_t", place):
            out[name] = table[name][row, column]
    for kind in KINDS:
        counts = table[f"{kind}_n"]
        out[f"{kind}_n"] = counts.sum(axis=1)
        first = np.argmax(counts > 0, axis=1)
        out[f"{kind}_step"] = table[f"{kind}_step"][row, first]
        out[f"{kind}_t"] = table[f"{kind}_t"][row, first]
    return out


def _weighted_mean(table: Structured) -> NDArray[np.float64]:
    """Mean over the finite values of each row; 0 where there is none. Never overflows."""
    total = np.maximum(table["finite"].sum(axis=1, keepdims=True), 1)
    share = table["finite"] / total
    mean: NDArray[np.float64] = (table["mean"] * share).sum(axis=1)
    return mean


def count_nonfinite(buckets: Structured) -> int:
    """Non-finite values in all the buckets."""
    return int(sum(buckets[f"{kind}_n"].sum() for kind in KINDS))
