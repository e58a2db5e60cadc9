"""The policy loss of each token: surrogate, divergence and entropy put together.

Called by `algorithms.update`, and by whoever shows what the loss is made of.

    loss_t = w_t surrogate_t + beta (r_t) D_t - c H_t

with w the sampler's correction, D the divergence (times the ratio r where it is weighed by
importance), H the entropy of the next-token distribution. The reduction comes after it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from training_core.contract.algorithms import PolicyGradientSpec
from training_core.losses.correction import correction_weights
from training_core.losses.divergence import divergence
from training_core.losses.policy_gradient import Surrogate, log_ratio, surrogate_loss


@dataclass(frozen=True)
class TokenInputs:
    """What the loss is computed from. B completions lie end to end in N."""

    logprobs_N: torch.Tensor
    """Under the policy that learns; with gradient."""
    old_N: torch.Tensor
    """Under the policy before the first update on this batch."""
    sampler_N: torch.Tensor
    """Under the policy that sampled."""
    advantages_N: torch.Tensor
    lengths_B: torch.Tensor
    reference_N: torch.Tensor | None = None
    """Under the reference; None without one."""
    entropy_N: torch.Tensor | None = None
    """Entropy of the distribution that the token was drawn from, in nats, with gradient."""


@dataclass(frozen=True)
class PolicyLoss:
    """Loss of each token, and its parts."""

    loss_N: torch.Tensor
    surrogate: Surrogate
    weight_N: torch.Tensor
    """The sampler's correction."""
    divergence_N: torch.Tensor | None
    """The estimator's value, without coefficient and gradient."""


def policy_loss(spec: PolicyGradientSpec, coefficient: float, tokens: TokenInputs) -> PolicyLoss:
    """Loss of each token; `coefficient` is the divergence's at this step. Shapes: all (N,)."""
    log_ratio_N = log_ratio(tokens.logprobs_N, tokens.old_N, tokens.lengths_B, spec.ratio)
    surrogate = surrogate_loss(spec, tokens.logprobs_N, log_ratio_N, tokens.advantages_N)
    weight_N = correction_weights(spec.correction, tokens.old_N, tokens.sampler_N, tokens.lengths_B)
    loss_N = surrogate.loss_N * weight_N
    apart_N: torch.Tensor | None = None
    if tokens.reference_N is not None:
        apart_N = divergence(tokens.logprobs_N, tokens.reference_N, spec.divergence.estimator)
        if spec.divergence.is_in("loss"):
            token_N = log_ratio(tokens.logprobs_N, tokens.old_N, tokens.lengths_B, "token")
            is_weighted = spec.divergence.importance_weighted
            loss_N = loss_N + coefficient * (apart_N * token_N.exp() if is_weighted else apart_N)
        apart_N = apart_N.detach()
    if spec.entropy_coefficient and tokens.entropy_N is not None:
        loss_N = loss_N - spec.entropy_coefficient * tokens.entropy_N
    return PolicyLoss(loss_N, surrogate, weight_N, apart_N)
