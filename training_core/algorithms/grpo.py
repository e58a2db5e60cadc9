"""GRPO: group-relative advantages and the clipped surrogate over tokens.

Used by `training_core.train` for an rl stage whose algorithm has type `grpo`. A later algorithm is
a sibling file with the same two methods, listed in `training_core.algorithms.select`.
Shao et al. 2024, arXiv 2402.03300; token-mean reduction as in DAPO, arXiv 2503.14476.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from training_core.contract.stages import GrpoSpec
from training_core.losses.advantages import group_advantages
from training_core.losses.policy_gradient import Surrogate, clipped_surrogate, token_log_ratio
from training_core.models.packing import TokenSequence
from training_core.types import PolicyBatch, RolloutGroup


class Grpo:
    """Group relative policy optimisation."""

    def __init__(self, spec: GrpoSpec) -> None:
        self.spec = spec

    def assign_advantages(
        self, groups: Sequence[RolloutGroup], rewards: Sequence[float | None]
    ) -> list[RolloutGroup]:
        """The groups with an advantage in each scored rollout; `rewards` in the groups' order."""
        group_ids = [group.group_id for group in groups for _ in group.rollouts]
        found = iter(group_advantages(rewards, group_ids, scale=self.spec.advantage))
        return [
            replace(
                group,
                rollouts=tuple(replace(r, advantage=next(found)) for r in group.rollouts),
            )
            for group in groups
        ]

    def build_batch(self, groups: Sequence[RolloutGroup]) -> PolicyBatch:
        """Sequences with a gradient, and the divisor of the whole window.

        Unscored rollouts are left out. Those with an advantage of 0 are left out of the batch,
        since their gradient is 0, but stay in the divisor. Truncated ones are in neither when
        `mask_truncated` says so.
        """
        counted = [
            (group, rollout)
            for group in groups
            for rollout in group.rollouts
            if rollout.advantage is not None
            and not (self.spec.mask_truncated and rollout.is_truncated)
        ]
        trained = [(group, rollout) for group, rollout in counted if rollout.advantage != 0]
        return PolicyBatch(
            tuple(TokenSequence(g.prompt_ids, r.completion.token_ids) for g, r in trained),
            tuple(rollout.advantage or 0.0 for _, rollout in trained),
            tuple(rollout.completion.logprobs for _, rollout in trained),
            sum(rollout.tokens for _, rollout in counted),
        )

    def token_loss(
        self, logprobs_N: torch.Tensor, old_logprobs_N: torch.Tensor, advantages_N: torch.Tensor
    ) -> Surrogate:
        """Loss of each token; `old_logprobs_N` belong to the policy before the first update."""
        return clipped_surrogate(
            token_log_ratio(logprobs_N, old_logprobs_N),
            advantages_N,
            clip_low=self.spec.clip_low,
            clip_high=self.spec.clip_high,
        )
