"""Which class serves which algorithm of a spec, and what such a class can do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import torch

from training_core.algorithms.grpo import Grpo
from training_core.contract.stages import AlgorithmSpec
from training_core.losses.policy_gradient import Surrogate
from training_core.types import PolicyBatch, RolloutGroup

ALGORITHMS: dict[str, Any] = {"grpo": Grpo}


class Algorithm(Protocol):
    """From scored groups to a batch, and from log-probabilities to the loss of tokens."""

    spec: AlgorithmSpec

    def assign_advantages(
        self, groups: Sequence[RolloutGroup], rewards: Sequence[float | None]
    ) -> list[RolloutGroup]:
        """The groups with their advantages."""

    def build_batch(self, groups: Sequence[RolloutGroup]) -> PolicyBatch:
        """What is learnt from, with the divisor of the window."""

    def token_loss(
        self, logprobs_N: torch.Tensor, old_logprobs_N: torch.Tensor, advantages_N: torch.Tensor
    ) -> Surrogate:
        """Loss of each completion token."""


def select_algorithm(spec: AlgorithmSpec) -> Algorithm:
    """The algorithm of an rl stage."""
    algorithm: Algorithm = ALGORITHMS[spec.type](spec)
    return algorithm
