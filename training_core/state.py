"""The state of a run between two steps: everything besides weights that decides what comes next.

Replaced at step boundaries by `training_core.train`, written into each checkpoint as `state.json`.
Random streams are not here: they follow from the seed and the step (`rollouts.seeds`).
"""

from __future__ import annotations

from training_core.contract.events import EvaluationLabel
from training_core.contract.rollouts import FinishReason, RewardScore
from training_core.contract.strict import WireModel
from training_core.curriculum.mix import MixState
from training_core.types import RolloutGroup


class PastEvaluation(WireModel):
    """One held-out evaluation, item by item, for paired comparisons with later ones."""

    step: int
    """Steps done when it ran."""
    label: EvaluationLabel
    """Why it ran."""
    title: str
    """In words, such as `base model`."""
    recipe: str
    """Hash of items, prompts, sampling and rewards; only equal recipes are compared."""
    passes: dict[str, dict[str, float]]
    """Domain to prompt id to the share of its completions that passed; unscored items are left
    out."""
    pass_at_1: float
    """Over all items."""
    reward: float
    """Mean reward over all items."""

    @property
    def is_anchor(self) -> bool:
        """Whether later evaluations are compared with this one."""
        return self.label in {"start", "stage_end"}


class BestEvaluation(WireModel):
    """The best held-out result so far."""

    step: int
    """Step whose weights it belongs to."""
    pass_at_1: float
    """Held-out pass@1."""
    reward: float
    """Mean held-out reward, which decides between equal pass@1."""


class CarriedRollout(WireModel):
    """A scored completion that waits for its step; its texts follow from its tokens."""

    token_ids: tuple[int, ...]
    """The sampled tokens."""
    logprobs: tuple[float, ...]
    """Log-probability of each under the policy that sampled it, in nats."""
    finish_reason: FinishReason
    """How it ended."""
    entropy_nats: float
    """Sum over its tokens."""
    scores: tuple[RewardScore, ...]
    """One entry for each reward leaf."""
    reward: float | None
    """Total reward; null when unscored."""


class CarriedGroup(WireModel):
    """A group that dynamic sampling has sampled too much."""

    group_id: str
    """Id in the run."""
    domain: str
    """Domain of its prompt."""
    prompt_index: int
    """Which prompt of the domain it is."""
    rollouts: tuple[CarriedRollout, ...]
    """Its completions."""


def carry(group: RolloutGroup, prompt_index: int) -> CarriedGroup:
    """A group as a checkpoint keeps it."""
    return CarriedGroup(
        group_id=group.group_id,
        domain=group.item.domain,
        prompt_index=prompt_index,
        rollouts=tuple(
            CarriedRollout(
                token_ids=rollout.completion.token_ids,
                logprobs=rollout.completion.logprobs,
                finish_reason=rollout.completion.finish_reason,
                entropy_nats=rollout.completion.entropy_nats,
                scores=rollout.scores,
                reward=rollout.reward,
            )
            for rollout in group.rollouts
        ),
    )


class RunState(WireModel):
    """Counters, sampler and history after `step` steps."""

    step: int = 0
    """Optimiser steps done."""
    mix: MixState
    """Where the mix of domains stands."""
    num_tokens: int = 0
    """Completion tokens sampled in training."""
    num_prompts: int = 0
    """Prompts used in training."""
    trained_s: float = 0.0
    """Seconds spent on steps, over all attempts that led here."""
    skipped_in_a_row: int = 0
    """Updates left out one after another because they were not finite."""
    micro_batch_tokens: int
    """Budget of a micro-batch, after what memory has forced."""
    evaluations: tuple[PastEvaluation, ...] = ()
    """All held-out evaluations so far."""
    best: BestEvaluation | None = None
    """The best evaluation of trained weights."""
    carried: tuple[CarriedGroup, ...] = ()
    """Groups that wait for the next step of the stage."""
    reference_step: int | None = None
    """Steps done when the policy was what it is measured against now; null without a reference."""
    divergence_coefficient: float | None = None
    """Weight of the divergence after what it has adapted to; null while it is the spec's."""
