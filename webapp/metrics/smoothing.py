"""Smoothing: an exponential moving average without start-up bias, over all data, before thinning.

Used by `read`. The average after the i-th finite value (Kingma & Ba 2015, section 3, with weight w
of the past) is

    m_i = sum_k w^(i-k) x_k / sum_k w^(i-k),   k = 1..i,

so the first value stays itself, a constant stays itself exactly, and appending values changes
nothing before them. Non-finite values are left out of the average and shown as they are.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

BLOCK = 64
"""Values that are averaged together; blocks count from the first value, whatever follows."""
NEGLIGIBLE = 2.0**-60
MAX_WEIGHT = 0.999
_HUGE = 1e300


def smooth(values: Floats, weight: float) -> Floats:
    """Smoothed values; `weight` is that of the past, from 0 (no smoothing) to below 1.

    Shapes: values (N,) -> (N,). Units: those of the values.
    """
    finite = np.isfinite(values)
    out = values.copy()
    if weight > 0 and finite.any():
        kept = values[finite]
        scale = 0.125 if np.abs(kept).max() > _HUGE else 1.0  # a power of two: exact
        out[finite] = _average(kept * scale, weight) / scale
    return out


def reach(weight: float) -> int:
    """How many values before one still move its average by more than a rounding error."""
    if weight <= 0:
        return 0
    return math.ceil(math.log(NEGLIGIBLE) / math.log(weight)) + BLOCK


def _average(values: Floats, w: float) -> Floats:
    """The average of finite values, block by block.

    Inside a block, values count from the block's first one, so that a constant gives differences
    of exactly 0. With r that value, F_i = sum_k (1-w) w^(i-k) (x_k - r) and W_i = 1 - w^i:
    m_i = r + F_i / W_i, and F at the end of a block carries over as W (m - r') to the next.
    """
    n = len(values)
    blocks = -(-n // BLOCK)
    padded = np.zeros(blocks * BLOCK)
    padded[:n] = values
    table = padded.reshape(blocks, BLOCK)
    start = table[:, :1].copy()
    local = (1 - w) * (table - start)
    shift, power = 1, w
    while shift < BLOCK:  # a scan in log2(BLOCK) passes: sums over twice as many values each time
        local[:, shift:] += power * local[:, :-shift].copy()
        shift, power = 2 * shift, power * power
    seen = np.arange(1, blocks * BLOCK + 1, dtype=np.float64).reshape(blocks, BLOCK)
    total = -np.expm1(seen * math.log(w))
    carried = _carry(start[:, 0], local[:, -1], total[:, -1], w)
    fading = w ** np.arange(1, BLOCK + 1)
    averaged = start + (local + carried[:, None] * fading) / total
    result: Floats = averaged.reshape(-1)[:n]
    return result


def _carry(starts: Floats, ends: Floats, totals: Floats, w: float) -> Floats:
    """W (m - r) at the beginning of each block: what the blocks before leave to it."""
    fade = w**BLOCK
    carried = np.zeros(len(starts))
    carry, mean, total = 0.0, float(starts[0]), 0.0
    for i, (start, end, next_total) in enumerate(
        zip(starts.tolist(), ends.tolist(), totals.tolist(), strict=True)
    ):
        carry = total * (mean - start)
        carried[i] = carry
        mean = start + (end + carry * fade) / next_total
        total = next_total
    return carried
