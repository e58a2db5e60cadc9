"""Metrics of a step's rollouts, as pure functions of the groups.

Called by `training_core.train`. Means run over rollouts or tokens of the whole step, and an
unscored rollout is in no mean of rewards.
"""

from __future__ import annotations

from collections.abc import Sequence

from training_core.losses.advantages import mean_and_std
from training_core.monitors.rollout_files import has_zero_spread
from training_core.types import Rollout, RolloutGroup


def rollout_metrics(groups: Sequence[RolloutGroup]) -> dict[str, float]:
    """Reward, components, lengths, entropy and domains of one step."""
    rollouts = [rollout for group in groups for rollout in group.rollouts]
    lengths = [rollout.tokens for rollout in rollouts]
    values = {
        "completions/mean_length": sum(lengths) / len(lengths),
        "completions/min_length": float(min(lengths)),
        "completions/max_length": float(max(lengths)),
        "completions/clipped_ratio": sum(r.is_truncated for r in rollouts) / len(rollouts),
        "entropy": sum(r.completion.entropy_nats for r in rollouts) / sum(lengths),
        "frac_reward_zero_std": sum(has_zero_spread(group) for group in groups) / len(groups),
    }
    return values | _reward_metrics(rollouts) | _domain_metrics(groups)


def _reward_metrics(rollouts: Sequence[Rollout]) -> dict[str, float]:
    """Total reward and each component."""
    values: dict[str, float] = {}
    total = [rollout.reward for rollout in rollouts if rollout.reward is not None]
    if total:
        values["reward"], values["reward_std"] = mean_and_std(total)
    for name in dict.fromkeys(score.name for rollout in rollouts for score in rollout.scores):
        scores = [value for r in rollouts if (value := r.value(name)) is not None]
        if scores:
            values[f"rewards/{name}/mean"], values[f"rewards/{name}/std"] = mean_and_std(scores)
        values[f"rewards/{name}/unscored"] = 1.0 - len(scores) / len(rollouts)
    return values


def _domain_metrics(groups: Sequence[RolloutGroup]) -> dict[str, float]:
    """Reward and number of prompts of each domain in the step."""
    values: dict[str, float] = {}
    for domain in dict.fromkeys(group.item.domain for group in groups):
        own = [group for group in groups if group.item.domain == domain]
        rewards = [r.reward for group in own for r in group.rollouts if r.reward is not None]
        values[f"domain/{domain}/prompts"] = float(len(own))
        if rewards:
            values[f"domain/{domain}/reward"] = mean_and_std(rewards)[0]
    return values
