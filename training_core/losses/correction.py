"""Importance weights for completions that the learning policy has not quite sampled itself.

Called by `losses.policy_loss`. They multiply the surrogate after clipping and have no gradient.
"""

from __future__ import annotations

import torch

from training_core.contract.algorithms import CorrectionSpec
from training_core.losses.policy_gradient import MAX_LOG_RATIO, sum_over_completion


def correction_weights(
    spec: CorrectionSpec,
    old_logprobs_N: torch.Tensor,
    sampler_logprobs_N: torch.Tensor,
    lengths_B: torch.Tensor,
) -> torch.Tensor:
    """w = min(exp(log pi_old - log sampler), cap), of tokens or summed over the completion.

    Shapes: (N,), (N,), (B,) -> (N,). Truncated importance sampling: Ionides 2008; for the gap
    between sampler and trainer Yao et al. 2025 ("Your efficient RL framework secretly brings you
    off-policy RL training").
    """
    difference_N = old_logprobs_N - sampler_logprobs_N
    if spec.level == "off":
        return torch.ones_like(difference_N)
    if spec.level == "sequence":
        difference_N = sum_over_completion(difference_N, lengths_B)
    return difference_N.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp().clamp(max=spec.cap)
