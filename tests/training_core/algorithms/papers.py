"""The loss of an optimiser window as papers write it: one token after the other, no tensors of many
completions, no sharing of code with `training_core.losses`.

What a formula holds fixed (`sg` in the papers) is read from `fixed`, so that differences of the
loss between two policies are those that its gradient describes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from tests.training_core.algorithms.rows import TEMPERATURE
from tests.training_core.models.policies import reference_tokens
from training_core.contract.algorithms import GroupRelativeSpec
from training_core.models.policy import Policy
from training_core.types import PolicyRow


@dataclass(frozen=True)
class Said:
    """What a policy says of one completion, token by token."""

    logprobs: torch.Tensor
    entropies: torch.Tensor


def say(policy: Policy, rows: Sequence[PolicyRow]) -> list[Said]:
    """By the model's own forward, in float64."""
    return [Said(*reference_tokens(policy, row.sequence, TEMPERATURE)) for row in rows]


def window_loss(
    spec: GroupRelativeSpec,
    rows: Sequence[PolicyRow],
    now: Sequence[Said],
    fixed: Sequence[Said],
    longest: int,
) -> torch.Tensor:
    """The scalar that an optimiser window follows downhill."""
    tokens = sum(len(said.logprobs) for said in now)
    total = torch.zeros((), dtype=torch.float64)
    for row, said, held in zip(rows, now, fixed, strict=True):
        length = len(said.logprobs)
        share = {
            "token_mean": 1 / tokens,
            "sequence_mean": 1 / (len(rows) * length),
            "constant": 1 / (len(rows) * longest),
        }[spec.reduction]
        for t in range(length):
            total = total + share * token_loss(spec, row, said, held, t)
    return total


def token_loss(
    spec: GroupRelativeSpec, row: PolicyRow, said: Said, held: Said, t: int
) -> torch.Tensor:
    """Surrogate, divergence and entropy of one token."""
    assert row.old_N is not None
    assert row.reference_N is not None
    old, advantage = row.old_N.double(), row.advantages_N[t].double()
    loss = correction(spec, row, t) * surrogate(spec, said, held, old, advantage, t)
    beta = spec.divergence.coefficient
    if spec.divergence.place == "loss" and beta:
        d = said.logprobs[t] - row.reference_N[t].double()
        apart = {"k1": d, "k2": d * d / 2, "k3": torch.exp(-d) + d - 1}[spec.divergence.estimator]
        if spec.divergence.importance_weighted:
            apart = torch.exp(said.logprobs[t] - old[t]) * apart
        loss = loss + beta * apart
    return loss - spec.entropy_coefficient * said.entropies[t]


def surrogate(
    spec: GroupRelativeSpec,
    said: Said,
    held: Said,
    old: torch.Tensor,
    advantage: torch.Tensor,
    t: int,
) -> torch.Tensor:
    """What REINFORCE, PPO, GSPO, RLOO and CISPO minimise at one token."""
    if spec.surrogate == "reinforce":
        return -advantage * said.logprobs[t]
    if spec.surrogate == "cispo":
        weight = ratio(spec, held, old, t).clamp(1 - spec.clip_low, 1 + spec.clip_high)
        return -weight.detach() * advantage * said.logprobs[t]
    r = ratio(spec, said, old, t)
    clipped = r.clamp(1 - spec.clip_low, 1 + spec.clip_high)
    loss = -torch.min(r * advantage, clipped * advantage)
    if spec.dual_clip is not None and advantage < 0:
        loss = torch.min(loss, -spec.dual_clip * advantage)
    return loss


def ratio(spec: GroupRelativeSpec, said: Said, old: torch.Tensor, t: int) -> torch.Tensor:
    """Of the token, of the completion per token, or of the completion."""
    if spec.ratio == "token":
        return torch.exp(said.logprobs[t] - old[t])
    apart = (said.logprobs - old).sum()
    return torch.exp(apart / len(old) if spec.ratio == "sequence" else apart)


def correction(spec: GroupRelativeSpec, row: PolicyRow, t: int) -> torch.Tensor:
    """Truncated importance weight of the sampler."""
    assert row.old_N is not None
    apart = row.old_N.double() - row.sampler_N.double()
    if spec.correction.level == "off":
        return torch.ones(())
    chosen = apart[t] if spec.correction.level == "token" else apart.sum()
    return torch.exp(chosen).clamp(max=spec.correction.cap)
