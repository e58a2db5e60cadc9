"""What the stages of a step hand to each other, and the letters of tensor shapes.

Shapes, declared here once: P prompt, G rollout in a group, B sequence in a batch, R row of a packed
batch, T token of a row, N completion token of a batch (all completions laid end to end), V
vocabulary, D model width. A tensor's name ends in its shape: `logprobs_N`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch

from training_core.contract.rollouts import RewardScore
from training_core.domains.item import PromptItem
from training_core.models.packing import TokenSequence
from training_core.rollouts.engine import Completion


@dataclass(frozen=True)
class Rollout:
    """One completion and what the rewards said about it."""

    completion: Completion
    raw: str
    """Its text, special tokens included."""
    text: str
    """Its text without them."""
    scores: tuple[RewardScore, ...] = ()
    """One entry for each reward leaf."""
    reward: float | None = None
    """Total reward; None when unscored."""
    advantage: float | None = None
    """What weights its gradient, mean over its tokens; None in evaluation, when unscored and when
    masked."""
    is_masked: bool = False
    """Whether it was left out of the loss although it has a reward."""

    @property
    def tokens(self) -> int:
        """Length, the end token included."""
        return len(self.completion.token_ids)

    @property
    def is_truncated(self) -> bool:
        """Whether it was cut at the limit."""
        return self.completion.finish_reason == "length"

    def value(self, reward_name: str) -> float | None:
        """Score of one reward; None when that reward failed."""
        return next((score.value for score in self.scores if score.name == reward_name), None)


@dataclass(frozen=True)
class RolloutGroup:
    """All rollouts of one prompt at one step."""

    group_id: str
    item: PromptItem
    prompt_ids: tuple[int, ...]
    rollouts: tuple[Rollout, ...]


@dataclass(frozen=True)
class PolicyRow:
    """One completion that the policy learns from. N token that the policy wrote itself."""

    sequence: TokenSequence
    advantages_N: torch.Tensor
    """Of each token; float32."""
    sampler_N: torch.Tensor
    """Log-probabilities under the sampler, in nats; float32."""
    reference_N: torch.Tensor | None = None
    """Log-probabilities under the reference, in nats; None without one."""
    old_N: torch.Tensor | None = None
    """Log-probabilities of the policy before the update, in nats; None while nobody needs them:
    then the policy that learns is its own measure."""
    is_stale: bool = False
    """Whether weights of an earlier step sampled it; what those said is then its `old_N`."""

    @property
    def tokens(self) -> int:
        """Tokens that the loss counts."""
        return len(self.advantages_N)

    @property
    def has_advantage(self) -> bool:
        """Whether any token does."""
        return bool((self.advantages_N != 0).any())

    def with_old(self, old_N: torch.Tensor) -> PolicyRow:
        """The same with log-probabilities before the update."""
        return replace(self, old_N=old_N)


Metrics = Mapping[str, float]
"""Metric name to value; names stand in `contract.metrics`."""
