"""Rows for updates: ragged completions whose probabilities have moved since they were sampled."""

from __future__ import annotations

from dataclasses import replace

import torch
from accelerate import Accelerator

from tests.training_core.models.policies import make_group, make_sequences
from training_core.algorithms.learner import Learner
from training_core.models.logprobs import HeadSettings
from training_core.models.policy import Policy
from training_core.types import PolicyRow

TEMPERATURE = 0.7
WHOLE = 1_000_000
SEQUENCES = [*make_group(6, [4, 2, 7]), *make_sequences((9, 5), (3, 1), (7, 6))]
ADVANTAGES = (1.5, -0.5, -1.0, 0.8, -0.8, 0.4)


def learner_of(
    policy: Policy, accelerator: Accelerator | None = None, budget: int = WHOLE
) -> Learner:
    """A learner that nobody watches."""
    return Learner(policy, accelerator or Accelerator(cpu=True), budget, lambda *_, **__: None)


def plain_rows(policy: Policy, shift: float = 0.0) -> list[PolicyRow]:
    """Rows whose sampler said what the policy says, plus a shift; nothing has moved."""
    found = learner_of(policy).logprobs(SEQUENCES, HeadSettings(TEMPERATURE))
    return [
        PolicyRow(sequence, torch.full((len(said_N),), advantage), said_N.float() + shift)
        for sequence, advantage, said_N in zip(SEQUENCES, ADVANTAGES, found, strict=True)
    ]


def ragged_rows(policy: Policy, seed: int = 0, spread: float = 0.6) -> list[PolicyRow]:
    """Rows with advantages of both signs, token by token, and old, sampler's and reference's
    log-probabilities around the policy's: ratios from about .2 to 4."""
    generator = torch.Generator().manual_seed(seed)

    def around(said_N: torch.Tensor) -> torch.Tensor:
        noise_N = torch.randn(len(said_N), generator=generator, dtype=torch.float64)
        return said_N.double() + (noise_N * spread).clamp(-1.4, 1.6)

    rows = []
    for row in plain_rows(policy):
        said_N = row.sampler_N
        noise_N = torch.randn(len(said_N), generator=generator, dtype=torch.float64)
        rows.append(
            replace(
                row,
                advantages_N=row.advantages_N.double() + 0.3 * noise_N,
                sampler_N=around(said_N),
                reference_N=around(said_N),
                old_N=around(said_N),
            )
        )
    return rows
