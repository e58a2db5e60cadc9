"""Divergence from a reference policy: three estimators, and a coefficient that may adapt.

Called by `losses.policy_loss` (in the loss) and `algorithms.advantages` (in the reward). With
d = log pi - log reference of the sampled token, all three have the mean KL(pi || reference) or come
near it; as losses they differ. The gradient of k1 has the mean 0; that of k2 is the right one
on-policy; that of k3 belongs to the other direction of the divergence (Schulman 2020,
"Approximating KL divergence"; survey of frameworks: Tang and Munos 2025, arXiv 2506.09477).
"""

from __future__ import annotations

import torch

from training_core.contract.algorithms import Estimator
from training_core.losses.policy_gradient import MAX_LOG_RATIO

MOST_CHANGE = 0.2
"""Largest relative change of the coefficient over a horizon."""


def divergence(
    logprobs_N: torch.Tensor, reference_N: torch.Tensor, estimator: Estimator
) -> torch.Tensor:
    """k1 = d, k2 = d^2 / 2, k3 = exp(-d) + d - 1, with d held within +-MAX_LOG_RATIO.

    Shapes: (N,), (N,) -> (N,), nats.
    """
    difference_N = (logprobs_N - reference_N).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO)
    if estimator == "k1":
        return difference_N
    if estimator == "k2":
        return 0.5 * difference_N.square()
    return (-difference_N).exp() + difference_N - 1.0


def adapted_coefficient(
    coefficient: float, *, measured: float, target: float, rollouts: int, horizon: int
) -> float:
    """beta (1 + clip(KL / target - 1, -0.2, 0.2) n / horizon).

    Ziegler et al. 2019 (arXiv 1909.08593), section 2.2. `measured` and `target` in nats per token.
    """
    error = min(MOST_CHANGE, max(-MOST_CHANGE, measured / target - 1.0))
    return coefficient * (1.0 + error * min(1.0, rollouts / horizon))
