"""Ratio and surrogate: two of the four choices of an algorithm, token by token.

Called by `losses.policy_loss`. B completions lie end to end in N; `lengths_B` says how many tokens
each has.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from training_core.contract.algorithms import PolicyGradientSpec, Ratio

MAX_LOG_RATIO = 20.0
"""Log-ratios are held within this, in nats, so that a broken policy gives large, not infinite."""


@dataclass(frozen=True)
class Surrogate:
    """Loss of each token, before any reduction, and where a bound had the say."""

    loss_N: torch.Tensor
    ratio_N: torch.Tensor
    """The ratio that was used; without a gradient."""
    clipped_low_N: torch.Tensor
    clipped_high_N: torch.Tensor


def log_ratio(
    logprobs_N: torch.Tensor, old_logprobs_N: torch.Tensor, lengths_B: torch.Tensor, level: Ratio
) -> torch.Tensor:
    """d_t = log pi(token) - log pi_old(token), or of the completion, held within +-MAX_LOG_RATIO.

    token: d_t; sequence: mean of d_t over the completion (GSPO, Zheng et al. 2025, arXiv
    2507.18071, equation 7); trajectory: their sum (RLOO, Ahmadian et al. 2024, arXiv 2402.14740).
    The last two stand at each token of the completion. Shapes: (N,), (N,), (B,) -> (N,), nats.
    """
    difference_N = logprobs_N - old_logprobs_N
    if level != "token":
        summed_N = sum_over_completion(difference_N, lengths_B)
        difference_N = summed_N / spread(lengths_B, lengths_B) if level == "sequence" else summed_N
    return difference_N.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO)


def sum_over_completion(values_N: torch.Tensor, lengths_B: torch.Tensor) -> torch.Tensor:
    """The sum over each completion, at each of its tokens. Shapes: (N,), (B,) -> (N,)."""
    member_N = spread(torch.arange(len(lengths_B), device=values_N.device), lengths_B)
    sums_B = torch.zeros(len(lengths_B), dtype=values_N.dtype, device=values_N.device)
    return sums_B.index_add(0, member_N, values_N)[member_N]


def spread(values_B: torch.Tensor, lengths_B: torch.Tensor) -> torch.Tensor:
    """A value of each completion at each of its tokens. Shapes: (B,), (B,) -> (N,)."""
    return values_B.repeat_interleave(lengths_B)


def surrogate_loss(
    spec: PolicyGradientSpec,
    logprobs_N: torch.Tensor,
    log_ratio_N: torch.Tensor,
    advantages_N: torch.Tensor,
) -> Surrogate:
    """The surrogate that the spec names. Shapes: all (N,)."""
    if spec.surrogate == "reinforce":
        return reinforce_surrogate(logprobs_N, log_ratio_N, advantages_N)
    bounds = {"clip_low": spec.clip_low, "clip_high": spec.clip_high}
    if spec.surrogate == "cispo":
        return cispo_surrogate(logprobs_N, log_ratio_N, advantages_N, **bounds)
    return clipped_surrogate(log_ratio_N, advantages_N, **bounds, dual_clip=spec.dual_clip)


def reinforce_surrogate(
    logprobs_N: torch.Tensor, log_ratio_N: torch.Tensor, advantages_N: torch.Tensor
) -> Surrogate:
    """loss = -A log pi. Williams 1992. Shapes: all (N,)."""
    never_N = torch.zeros_like(logprobs_N, dtype=torch.bool)
    ratio_N = log_ratio_N.detach().exp()
    return Surrogate(-advantages_N * logprobs_N, ratio_N, never_N, never_N)


def clipped_surrogate(
    log_ratio_N: torch.Tensor,
    advantages_N: torch.Tensor,
    *,
    clip_low: float,
    clip_high: float,
    dual_clip: float | None = None,
) -> Surrogate:
    """loss = -min(r A, clip(r, 1 - clip_low, 1 + clip_high) A), with r = exp(log_ratio).

    With `dual_clip` c a negative A gives at most -c A. Shapes: log_ratio_N, advantages_N (N,) ->
    all (N,). Schulman et al. 2017 (arXiv 1707.06347), equation 7; two bounds as in DAPO (arXiv
    2503.14476); dual clip: Ye et al. 2020 (arXiv 1912.09729), equation 5.
    """
    ratio_N = log_ratio_N.exp()
    clipped_N = ratio_N.clamp(1.0 - clip_low, 1.0 + clip_high)
    loss_N = -torch.minimum(ratio_N * advantages_N, clipped_N * advantages_N)
    with torch.no_grad():
        low_N = (ratio_N < 1.0 - clip_low) & (advantages_N < 0)
        high_N = (ratio_N > 1.0 + clip_high) & (advantages_N > 0)
    if dual_clip is not None:
        is_bad_N = advantages_N < 0
        loss_N = torch.where(is_bad_N, torch.minimum(loss_N, -dual_clip * advantages_N), loss_N)
        high_N = high_N | (is_bad_N & (ratio_N.detach() > dual_clip))
    return Surrogate(loss_N, ratio_N.detach(), low_N, high_N)


def cispo_surrogate(
    logprobs_N: torch.Tensor,
    log_ratio_N: torch.Tensor,
    advantages_N: torch.Tensor,
    *,
    clip_low: float,
    clip_high: float,
) -> Surrogate:
    """loss = -w A log pi, with w = clip(r, 1 - clip_low, 1 + clip_high) that has no gradient.

    No token is ever without a gradient. MiniMax 2025 (arXiv 2506.13585), equation 4. Shapes: all
    (N,).
    """
    ratio_N = log_ratio_N.detach().exp()
    weight_N = ratio_N.clamp(1.0 - clip_low, 1.0 + clip_high)
    loss_N = -weight_N * advantages_N * logprobs_N
    return Surrogate(loss_N, ratio_N, ratio_N < 1.0 - clip_low, ratio_N > 1.0 + clip_high)
