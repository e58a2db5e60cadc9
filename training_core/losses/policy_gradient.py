"""The clipped policy-gradient surrogate, token by token.

Called by `algorithms.grpo`. One of four independent choices: advantage, ratio level, surrogate,
reduction; this file is ratio level `token` and surrogate `clip`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

MAX_LOG_RATIO = 20.0
"""Log-ratios are held within this, in nats, so that a broken policy gives large, not infinite."""


@dataclass(frozen=True)
class Surrogate:
    """Loss of each completion token, before any reduction, and where the clip had the say."""

    loss_N: torch.Tensor
    clipped_low_N: torch.Tensor
    clipped_high_N: torch.Tensor


def token_log_ratio(logprobs_N: torch.Tensor, old_logprobs_N: torch.Tensor) -> torch.Tensor:
    """log pi(token) - log pi_old(token), held within +-MAX_LOG_RATIO.

    Shapes: (N,), (N,) -> (N,), nats.
    """
    return (logprobs_N - old_logprobs_N).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO)


def clipped_surrogate(
    log_ratio_N: torch.Tensor,
    advantages_N: torch.Tensor,
    *,
    clip_low: float,
    clip_high: float,
) -> Surrogate:
    """loss = -min(r A, clip(r, 1 - clip_low, 1 + clip_high) A), with r = exp(log_ratio).

    Shapes: log_ratio_N, advantages_N (N,) -> all (N,).
    Schulman et al. 2017 (arXiv 1707.06347), equation 7; two bounds as in DAPO (arXiv 2503.14476).
    """
    ratio_N = log_ratio_N.exp()
    clipped_N = ratio_N.clamp(1.0 - clip_low, 1.0 + clip_high)
    loss_N = -torch.minimum(ratio_N * advantages_N, clipped_N * advantages_N)
    with torch.no_grad():
        low_N = (ratio_N < 1.0 - clip_low) & (advantages_N < 0)
        high_N = (ratio_N > 1.0 + clip_high) & (advantages_N > 0)
    return Surrogate(loss_N, low_N, high_N)
