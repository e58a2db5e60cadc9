"""Sums over the tokens of an update, from which its metrics are made.

Used by `algorithms.update`. A metric is a sum over a count, over all micro-batches, updates and
processes: never a mean of means.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import torch

from training_core.losses.policy_gradient import MAX_LOG_RATIO
from training_core.losses.policy_loss import PolicyLoss, TokenInputs


@dataclass
class Tally:
    """Sums and maxima by name."""

    sums: dict[str, float] = field(default_factory=dict)
    maxima: dict[str, float] = field(default_factory=dict)

    def __getitem__(self, name: str) -> float:
        return self.sums.get(name, 0.0)

    @classmethod
    def together(cls, parts: Iterable[Tally]) -> Tally:
        """All parts as one."""
        whole = cls()
        for part in parts:
            for name, value in part.sums.items():
                whole.sums[name] = whole.sums.get(name, 0.0) + value
            for name, value in part.maxima.items():
                whole.maxima[name] = max(whole.maxima.get(name, value), value)
        return whole

    def mean(self, name: str, over: str = "tokens") -> float:
        """A sum over a count that is not 0."""
        return self[name] / self[over]


@torch.no_grad()
def count_tokens(
    tokens: TokenInputs, found: PolicyLoss, weight_N: torch.Tensor, fresh_N: torch.Tensor
) -> Tally:
    """One micro-batch. `weight_N` is each token's share of the divisor; `fresh_N` is 1 where the
    policy of this step has sampled."""
    apart_N = (tokens.logprobs_N - tokens.sampler_N).double()
    held_N = apart_N.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO)
    surrogate = found.surrogate
    moved_N = (tokens.logprobs_N - tokens.old_N).abs() * fresh_N
    sums = {
        "tokens": float(len(apart_N)),
        "loss": _sum(found.loss_N * weight_N),
        "low": _sum(surrogate.clipped_low_N),
        "high": _sum(surrogate.clipped_high_N),
        "ratio": _sum(surrogate.ratio_N),
        "distance": _sum(apart_N.abs()),
        "sampler_kl": _sum(held_N.expm1() - held_N),
        "weight": _sum(found.weight_N),
    }
    if tokens.entropy_N is not None:
        sums["entropy"] = _sum(tokens.entropy_N)
    maxima = {
        "distance": float(apart_N.abs().max()),
        "ratio": float(surrogate.ratio_N.max()),
        "moved": float(moved_N.max()),
    }
    return Tally(sums, maxima)


def _sum(values_N: torch.Tensor) -> float:
    """Sum in float64."""
    return float(values_N.double().sum())
