"""Rollout records: the lines of a rollout file, written whole and never changed.

Written by `training_core.monitors.rollout_files`, read by `webapp.rollouts` for the rollouts page.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from training_core.contract.domains import Message
from training_core.contract.strict import WireModel

ScoreStatus = Literal["ok", "abstain", "error", "timeout", "gold_bad", "skipped"]
FinishReason = Literal["eos", "length", "repeat"]


class RewardScore(WireModel):
    """What one reward said about one completion."""

    name: str
    """Name of the reward leaf."""
    weight: float
    """Its weight in the total."""
    status: ScoreStatus
    """`ok`, or why there is no score."""
    value: float | None
    """The score; null unless the status is `ok`."""
    explanation: str
    """Why, in a sentence."""


class RolloutRecord(WireModel):
    """One completion with everything that was made of it."""

    index: int
    """Position inside its group, from 0."""
    completion: str
    """The text as the policy wrote it, special tokens left in."""
    text: str
    """The text without special tokens, as rewards saw it."""
    tokens: int
    """Completion length in tokens, the end token included."""
    token_ids: tuple[int, ...]
    """The sampled tokens."""
    logprobs: tuple[float, ...]
    """Log-probability of each sampled token under the policy that sampled it, in nats."""
    finish_reason: FinishReason
    """How it ended; `length` means cut at the limit."""
    scores: tuple[RewardScore, ...]
    """One entry for each reward leaf."""
    reward: float | None
    """Total reward; null when unscored."""
    advantage: float | None
    """Advantage that weighted its gradient; null in evaluation and when unscored."""
    passed: bool | None = None
    """Whether it counts as success; null when unscored."""


class RolloutGroupRecord(WireModel):
    """All rollouts of one prompt at one step."""

    group_id: str
    """Id unique in the run: the same prompt sampled twice makes two groups."""
    step: int
    """Step it was sampled for."""
    stage: str
    """Name of the stage."""
    kind: Literal["train", "evaluate"]
    """Sampled for training or evaluation."""
    domain: str
    """Domain of the prompt."""
    prompt_id: str
    """Stable id of the prompt inside its domain."""
    messages: tuple[Message, ...]
    """The prompt."""
    prompt_tokens: int
    """Prompt length in tokens."""
    answer: str
    """The right answer."""
    rollouts: tuple[RolloutRecord, ...] = Field(min_length=1)
    """The completions."""
    reward_mean: float | None
    """Mean reward of the scored completions."""
    reward_std: float | None
    """Standard deviation (n - 1) of their rewards; null below two."""
    zero_spread: bool
    """Whether all rewards are equal, so that the group teaches nothing."""
