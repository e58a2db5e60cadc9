"""One rl update: from judged completions to new weights, with what happened on the way.

Called by `training_core.train` in each step of an rl stage, and by a step under glass. Each pass
over the rows is cut into windows; each window is one step of the optimiser.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import torch

from training_core.algorithms.learner import Learner, TokenLoss
from training_core.algorithms.tally import Tally, count_tokens
from training_core.contract.algorithms import PolicyGradientSpec
from training_core.losses.policy_loss import TokenInputs, policy_loss
from training_core.losses.reduction import Window, measure_window
from training_core.models.logprobs import HeadSettings, TokenLogprobs
from training_core.models.packing import PackedBatch
from training_core.types import Metrics, PolicyRow


@dataclass(frozen=True)
class UpdateSettings:
    """What an update needs to know besides its rows."""

    algorithm: PolicyGradientSpec
    temperature: float
    longest: int
    """Limit of the sampler in tokens, for the constant divisor."""
    max_grad_norm: float
    coefficient: float = 0.0
    """Weight of the divergence at this step."""
    seed: int = 0
    """Of the order in which rows come to windows."""

    @property
    def windows(self) -> int:
        """Steps of the optimiser in one update."""
        return self.algorithm.inner_epochs * self.algorithm.minibatches


@dataclass(frozen=True)
class UpdateResult:
    """What an update did."""

    metrics: Metrics
    skipped: int
    """Optimiser steps left out because loss or gradient was not finite."""


def update_policy(
    learner: Learner,
    optimiser: torch.optim.Optimizer,
    rows: Sequence[PolicyRow],
    settings: UpdateSettings,
) -> UpdateResult:
    """Follow the loss of all rows, `inner_epochs` times in `minibatches` windows each.

    With a single window the policy that learns is the one before the update: its ratio is 1 by
    construction and needs no pass of its own. A row without any gradient costs no pass, but counts
    in the divisor.
    """
    rows = with_old_logprobs(learner, rows, settings) if settings.windows > 1 else rows
    parts: list[list[Tally]] = []
    norms: list[float | None] = []
    for epoch in range(settings.algorithm.inner_epochs):
        for chosen in plan_windows(len(rows), settings, epoch):
            own = [rows[index] for index in chosen]
            parts.append(window_gradient(learner, own, settings, may_abandon=not norms))
            norms.append(learner.apply(optimiser, max_grad_norm=settings.max_grad_norm))
    return UpdateResult(_metrics(rows, parts, norms, settings), norms.count(None))


def plan_windows(rows: int, settings: UpdateSettings, epoch: int) -> list[list[int]]:
    """Indices of the rows of each window of an epoch: shuffled, and as even as may be."""
    count = settings.algorithm.minibatches
    order = list(range(rows))
    if count > 1:
        Random(f"{settings.seed}/{epoch}").shuffle(order)
    return [sorted(order[place::count]) for place in range(count)]


def with_old_logprobs(
    learner: Learner, rows: Sequence[PolicyRow], settings: UpdateSettings
) -> list[PolicyRow]:
    """The rows with their log-probabilities before the first update, window by window.

    Computed in the very batches in which they are learnt from, so that the first ratio is 1.
    """
    found = list(rows)
    head = HeadSettings(settings.temperature)
    for chosen in plan_windows(len(rows), settings, epoch=0):
        wanted = [
            index
            for index in chosen
            if rows[index].old_N is None and needs_gradient(rows[index], settings)
        ]
        logprobs = learner.logprobs([rows[index].sequence for index in wanted], head)
        for index, old_N in zip(wanted, logprobs, strict=True):
            found[index] = rows[index].with_old(old_N)
    return found


def needs_gradient(row: PolicyRow, settings: UpdateSettings) -> bool:
    """Whether any part of the loss of a row has a gradient."""
    algorithm = settings.algorithm
    return (
        row.has_advantage
        or (settings.coefficient > 0 and algorithm.divergence.is_in("loss"))
        or algorithm.entropy_coefficient > 0
    )


def window_gradient(
    learner: Learner,
    rows: Sequence[PolicyRow],
    settings: UpdateSettings,
    *,
    may_abandon: bool = True,
) -> list[Tally]:
    """Add the gradient of one window; `rows` are this process's share of it.

    Each process calls it, also one without rows.
    """
    window = measure_window(
        learner.accelerator, tokens=sum(row.tokens for row in rows), sequences=len(rows)
    )
    trained = [row for row in rows if needs_gradient(row, settings)]
    return learner.accumulate(
        [row.sequence for row in trained],
        _token_loss(trained, window, settings),
        HeadSettings(settings.temperature, settings.algorithm.entropy_coefficient > 0),
        may_abandon=may_abandon,
    )


def _token_loss(
    rows: Sequence[PolicyRow], window: Window, settings: UpdateSettings
) -> TokenLoss[Tally]:
    """Loss of each token of a micro-batch, with its share of the divisor."""
    reduction, longest = settings.algorithm.reduction, settings.longest
    weights = [window.token_weight(reduction, row.tokens, longest) for row in rows]

    def token_loss(packed: PackedBatch, found: TokenLogprobs) -> tuple[torch.Tensor, Tally]:
        chosen = [rows[member] for member in packed.members]
        tokens = _inputs(chosen, found)
        weights_B = tokens.logprobs_N.new_tensor([weights[member] for member in packed.members])
        weight_N = weights_B.repeat_interleave(tokens.lengths_B)
        fresh_B = weights_B.new_tensor([not row.is_stale for row in chosen])
        loss = policy_loss(settings.algorithm, settings.coefficient, tokens)
        tally = count_tokens(tokens, loss, weight_N, fresh_B.repeat_interleave(tokens.lengths_B))
        return loss.loss_N * weight_N, tally

    return token_loss


def _inputs(rows: Sequence[PolicyRow], found: TokenLogprobs) -> TokenInputs:
    """The rows of a micro-batch end to end, on its device and in its type."""
    logprobs_N = found.logprobs_N
    lengths = [row.tokens for row in rows]
    current = torch.split(logprobs_N.detach(), lengths)
    references = [row.reference_N for row in rows if row.reference_N is not None]
    return TokenInputs(
        logprobs_N=logprobs_N,
        old_N=torch.cat(
            [
                now_N if row.old_N is None else row.old_N.to(logprobs_N)
                for row, now_N in zip(rows, current, strict=True)
            ]
        ),
        sampler_N=torch.cat([row.sampler_N for row in rows]).to(logprobs_N),
        advantages_N=torch.cat([row.advantages_N for row in rows]).to(logprobs_N),
        lengths_B=torch.tensor(lengths, device=logprobs_N.device),
        reference_N=torch.cat(references).to(logprobs_N) if references else None,
        entropy_N=found.entropy_N,
    )


def _metrics(
    rows: Sequence[PolicyRow],
    parts: Sequence[Sequence[Tally]],
    norms: Sequence[float | None],
    settings: UpdateSettings,
) -> dict[str, float]:
    """Of all windows; the sampler's distance is that before the first update."""
    whole = Tally.together(tally for window in parts for tally in window)
    first = Tally.together(parts[0])
    counted = sum(row.tokens for row in rows)
    trained = sum(row.tokens for row in rows if needs_gradient(row, settings))
    values = {
        "loss": whole["loss"] / len(parts),
        "grad_norm": math.nan if norms[-1] is None else norms[-1],
        "advantage/abs_max": max((float(row.advantages_N.abs().max()) for row in rows), default=0),
        "advantage/tokens_with_gradient": trained / max(1, counted),
    }
    if whole["tokens"] == 0:
        return values
    low, high = whole.mean("low"), whole.mean("high")
    values |= {
        "clip_ratio/region_mean": low + high,
        "clip_ratio/low_mean": low,
        "clip_ratio/high_mean": high,
        "ratio/mean": whole.mean("ratio"),
        "ratio/max": whole.maxima["ratio"],
        "ratio/first_deviation_max": first.maxima.get("moved", 0.0),
    }
    if first["tokens"]:
        values |= {
            "sampling/logprob_difference/mean": first.mean("distance"),
            "sampling/logprob_difference/max": first.maxima["distance"],
            "sampling/kl": first.mean("sampler_kl"),
            "sampling/importance_weight/mean": first.mean("weight"),
        }
    return values
