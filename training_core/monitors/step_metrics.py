"""Metrics of a step's rollouts, as pure functions of the groups.

Called by `training_core.train`. Means run over rollouts or tokens of the whole step, and an
unscored rollout is in no mean of rewards. What holds for the step is told of each domain too, under
`domain/{domain}/`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from training_core.losses.advantages import mean_and_std
from training_core.monitors.rollout_files import has_zero_spread
from training_core.types import Rollout, RolloutGroup

Passed = Callable[[Rollout], bool | None]


def rollout_metrics(groups: Sequence[RolloutGroup], passed: Passed) -> dict[str, float]:
    """Reward, components, lengths, entropy, shares of tokens, and domains of one step."""
    rollouts = _rollouts(groups)
    values = _common_metrics(groups, rollouts) | _reward_metrics(rollouts)
    values |= _solved_lengths(rollouts, passed) | _token_shares(groups)
    for domain in dict.fromkeys(group.item.domain for group in groups):
        own = [group for group in groups if group.item.domain == domain]
        values |= _domain_metrics(domain, own)
    return values


def _rollouts(groups: Sequence[RolloutGroup]) -> list[Rollout]:
    return [rollout for group in groups for rollout in group.rollouts]


def _common_metrics(
    groups: Sequence[RolloutGroup], rollouts: Sequence[Rollout]
) -> dict[str, float]:
    """Lengths, entropy and spread."""
    lengths = [rollout.tokens for rollout in rollouts]
    values = {
        "completions/mean_length": sum(lengths) / len(lengths),
        "completions/min_length": float(min(lengths)),
        "completions/max_length": float(max(lengths)),
        "completions/clipped_ratio": sum(r.is_truncated for r in rollouts) / len(rollouts),
        "frac_reward_zero_std": sum(has_zero_spread(group) for group in groups) / len(groups),
    }
    if any(lengths):
        values["entropy"] = sum(r.completion.entropy_nats for r in rollouts) / sum(lengths)
    ended = [rollout.tokens for rollout in rollouts if not rollout.is_truncated]
    if ended:
        values["completions/mean_terminated_length"] = sum(ended) / len(ended)
    return values


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


def _solved_lengths(rollouts: Sequence[Rollout], passed: Passed) -> dict[str, float]:
    """Whether longer completions are better thought out, or only longer."""
    values: dict[str, float] = {}
    for name, wanted in (("solved", True), ("unsolved", False)):
        lengths = [rollout.tokens for rollout in rollouts if passed(rollout) is wanted]
        if lengths:
            values[f"completions/mean_length_{name}"] = sum(lengths) / len(lengths)
    return values


def _token_shares(groups: Sequence[RolloutGroup]) -> dict[str, float]:
    """Why tokens teach nothing, as shares of all tokens that were sampled.

    Each token has one reason at most: unscored, else masked, else of a group without any
    advantage. How many were truncated stands beside them.
    """
    counts = {"unscored": 0, "masked": 0, "dead": 0, "truncated": 0}
    total = 0
    for group in groups:
        is_dead = not any(rollout.advantage for rollout in group.rollouts)
        for rollout in group.rollouts:
            total += rollout.tokens
            counts["truncated"] += rollout.tokens * rollout.is_truncated
            if rollout.reward is None:
                counts["unscored"] += rollout.tokens
            elif rollout.is_masked:
                counts["masked"] += rollout.tokens
            elif is_dead:
                counts["dead"] += rollout.tokens
    if total == 0:
        return {}
    return {f"tokens/{name}_frac": count / total for name, count in counts.items()}


def _domain_metrics(domain: str, groups: Sequence[RolloutGroup]) -> dict[str, float]:
    """The same of one domain."""
    rollouts = _rollouts(groups)
    common = _common_metrics(groups, rollouts)
    values = {"prompts": float(len(groups))} | {
        name: common[name]
        for name in (
            "completions/mean_length",
            "completions/clipped_ratio",
            "frac_reward_zero_std",
            "entropy",
        )
        if name in common
    }
    rewards = [rollout.reward for rollout in rollouts if rollout.reward is not None]
    if rewards:
        values["reward"] = mean_and_std(rewards)[0]
    return {f"domain/{domain}/{name}": value for name, value in values.items()}
