"""Advantages of single tokens: returns, generalised advantage estimation, whitening.

Called by `algorithms.advantages`. One float64 tensor for each completion, over the tokens that the
policy wrote itself: what a tool or an environment has put between them is not in it, so that a
value is carried over such a stretch unchanged.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

WHITEN_EPS = 1e-8
"""Added to the variance."""
ROUNDING = 1e-6
"""Values whose deviation is no more than this, relative to their size, are equal."""


def token_rewards(reward: float, penalties_N: torch.Tensor | None, length: int) -> torch.Tensor:
    """The reward at the last token that was really sampled, less a penalty at each token.

    Shapes: penalties_N (N,) -> (N,). An empty completion has none.
    """
    rewards_N = torch.zeros(length, dtype=torch.float64)
    if length:
        rewards_N[-1] = reward
    return rewards_N if penalties_N is None else rewards_N - penalties_N.double()


def token_returns(rewards_N: torch.Tensor) -> torch.Tensor:
    """R_t = r_t + R_{t+1}: what is still to come, without discount. Shapes: (N,) -> (N,)."""
    return rewards_N.flip(0).cumsum(0).flip(0)


def generalised_advantages(
    rewards_N: torch.Tensor, values_N: torch.Tensor, *, gamma: float, gae_lambda: float
) -> torch.Tensor:
    """A_t = d_t + gamma lambda A_{t+1}, d_t = r_t + gamma V_{t+1} - V_t, V and A 0 after the end.

    Shapes: (N,), (N,) -> (N,). Returns are A + V. Schulman et al. 2016 (arXiv 1506.02438),
    equation 16.
    """
    advantages_N = torch.zeros_like(rewards_N)
    ahead, value_ahead = 0.0, 0.0
    for t in range(len(rewards_N) - 1, -1, -1):
        value = float(values_N[t])
        ahead = float(rewards_N[t]) + gamma * value_ahead - value + gamma * gae_lambda * ahead
        advantages_N[t], value_ahead = ahead, value
    return advantages_N


def whiten(rows: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """(A - mean) / sqrt(variance + eps) over the tokens of all rows, variance with n - 1.

    Shapes: each (N,) -> each (N,). Equal values, and a single one, give exactly 0.
    """
    if not rows:
        return []
    tokens = torch.cat(list(rows)).double()
    mean = tokens.mean()
    variance = float((tokens - mean).square().sum()) / max(1, len(tokens) - 1)
    if len(tokens) == 0 or math.sqrt(variance) <= ROUNDING * float(tokens.abs().max()):
        return [torch.zeros_like(row) for row in rows]
    scale = math.sqrt(variance + WHITEN_EPS)
    return [(row - mean) / scale for row in rows]


def explained_variance(values_N: torch.Tensor, returns_N: torch.Tensor) -> float:
    """1 - var(returns - values) / var(returns): 1 is perfect, 0 no better than a constant.

    Shapes: (N,), (N,). NaN where the returns do not vary.
    """
    spread = float(returns_N.double().var(correction=0)) if len(returns_N) else 0.0
    if spread == 0:
        return math.nan
    return 1.0 - float((returns_N.double() - values_N.double()).var(correction=0)) / spread
