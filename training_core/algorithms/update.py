"""One rl update: from a batch of rollouts to new weights, with what happened on the way.

Called by `training_core.train` in each step of an rl stage.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from training_core.algorithms.learner import Learner, TokenLoss
from training_core.algorithms.select import Algorithm
from training_core.losses.policy_gradient import MAX_LOG_RATIO, Surrogate
from training_core.losses.reduction import window_divisor
from training_core.models.logprobs import TokenLogprobs
from training_core.models.packing import PackedBatch
from training_core.types import Metrics, PolicyBatch


@dataclass(frozen=True)
class _Tally:
    """Sums over the tokens of a micro-batch: metrics are means of tokens, not means of means."""

    tokens: int
    loss: float
    low: int
    high: int
    distance: float
    """Sum of |trainer - sampler|, in nats."""
    distance_max: float
    kl: float
    """Sum of k3 = exp(d) - d - 1, with d = trainer - sampler, in nats."""


def _count(surrogate: Surrogate, logprobs_N: torch.Tensor, sampler_N: torch.Tensor) -> _Tally:
    """Count one micro-batch."""
    difference_N = (logprobs_N.detach() - sampler_N).double()
    held_N = difference_N.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO)
    return _Tally(
        tokens=len(difference_N),
        loss=float(surrogate.loss_N.detach().double().sum()),
        low=int(surrogate.clipped_low_N.sum()),
        high=int(surrogate.clipped_high_N.sum()),
        distance=float(difference_N.abs().sum()),
        distance_max=float(difference_N.abs().max()),
        kl=float((held_N.exp() - held_N - 1).sum()),
    )


@dataclass(frozen=True)
class UpdateSettings:
    """What an update needs to know besides the batch."""

    temperature: float
    max_grad_norm: float
    inner_epochs: int


@dataclass(frozen=True)
class UpdateResult:
    """What an update did."""

    metrics: Metrics
    skipped: int
    """Optimiser steps left out because loss or gradient was not finite."""


def update_policy(
    learner: Learner,
    optimiser: torch.optim.Optimizer,
    algorithm: Algorithm,
    batch: PolicyBatch,
    settings: UpdateSettings,
) -> UpdateResult:
    """Follow the algorithm's loss for `inner_epochs` optimiser steps on one batch.

    With one epoch the ratio is 1 by construction and no pass for old log-probabilities is made.
    """
    divisor = window_divisor(learner.accelerator, batch.divisor_tokens)
    old: list[torch.Tensor] | None = None
    if settings.inner_epochs > 1:
        old = learner.logprobs(batch.sequences, temperature=settings.temperature)
    tallies: list[_Tally] = []
    norms: list[float | None] = []
    first: list[_Tally] = []
    for epoch in range(settings.inner_epochs):
        found = learner.accumulate(
            batch.sequences,
            _token_loss(algorithm, batch, old),
            divisor_tokens=divisor,
            temperature=settings.temperature,
            may_abandon=epoch == 0,
        )
        norms.append(learner.apply(optimiser, max_grad_norm=settings.max_grad_norm))
        tallies += found
        first = first or found
    metrics = {
        "loss": sum(tally.loss for tally in tallies) / divisor / settings.inner_epochs,
        "grad_norm": math.nan if norms[-1] is None else norms[-1],
        "advantage/abs_max": max((abs(a) for a in batch.advantages), default=0.0),
        "advantage/tokens_with_gradient": sum(tally.tokens for tally in first) / divisor,
    }
    return UpdateResult(metrics | _token_means(tallies, first), norms.count(None))


def _token_loss(
    algorithm: Algorithm, batch: PolicyBatch, old: Sequence[torch.Tensor] | None
) -> TokenLoss[_Tally]:
    """The algorithm's loss, with each sequence's advantage spread over its tokens."""
    advantages_B = torch.tensor(batch.advantages)
    lengths_B = torch.tensor([len(sequence.completion_ids) for sequence in batch.sequences])
    sampler = [torch.tensor(row) for row in batch.sampler_logprobs]

    def token_loss(packed: PackedBatch, found: TokenLogprobs) -> tuple[torch.Tensor, _Tally]:
        logprobs_N = found.logprobs_N
        members = torch.tensor(packed.members)
        advantages_N = advantages_B[members].repeat_interleave(lengths_B[members])
        sampler_N = torch.cat([sampler[member] for member in packed.members])
        old_N = logprobs_N.detach()
        if old is not None:
            old_N = torch.cat([old[member] for member in packed.members])
        surrogate = algorithm.token_loss(logprobs_N, old_N, advantages_N.to(logprobs_N))
        return surrogate.loss_N, _count(surrogate, logprobs_N, sampler_N.to(logprobs_N))

    return token_loss


def _token_means(tallies: Sequence[_Tally], first: Sequence[_Tally]) -> dict[str, float]:
    """Means over tokens; nothing when no token had a gradient.

    Clipping is counted over all epochs, the sampler's distance before the first update.
    """
    tokens = sum(tally.tokens for tally in tallies)
    if tokens == 0:
        return {}
    low, high = sum(t.low for t in tallies) / tokens, sum(t.high for t in tallies) / tokens
    compared = sum(tally.tokens for tally in first)
    return {
        "clip_ratio/region_mean": low + high,
        "clip_ratio/low_mean": low,
        "clip_ratio/high_mean": high,
        "sampling/logprob_difference/mean": sum(t.distance for t in first) / compared,
        "sampling/logprob_difference/max": max(t.distance_max for t in first),
        "sampling/kl": sum(t.kl for t in first) / compared,
    }
