"""Metric catalogue: every metric's unit, direction and meaning, in one place.

The trainer may log only names that stand here; charts take axis titles and help from here; docs are
generated from here. `{name}` is a reward's name and `{domain}` a domain's name. Metrics marked
`wall_clock` depend on the machine's speed; all others repeat exactly on the same processor.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal, NamedTuple

Direction = Literal["higher", "lower", "none"]


class MetricDef(NamedTuple):
    """What one metric is."""

    name: str
    """Name, or pattern with `{name}` and `{domain}`."""
    unit: str
    """Unit of the axis; empty for a plain number."""
    direction: Direction
    """Which way is better; `none` when neither is."""
    meaning: str
    """One sentence for people."""
    wall_clock: bool = False
    """Whether it depends on the machine's speed."""
    headline: bool = False
    """Whether it is shown first."""


METRICS: tuple[MetricDef, ...] = (
    MetricDef("eval/pass@1", "share of items", "higher", "Held-out items solved.", headline=True),
    MetricDef("eval/reward", "reward", "higher", "Mean held-out reward.", headline=True),
    MetricDef("eval/rewards/{name}", "score", "higher", "Mean held-out score of one reward."),
    MetricDef("eval/completion_length", "tokens", "none", "Mean held-out completion length."),
    MetricDef("eval/clipped_ratio", "share", "lower", "Held-out completions cut at the limit."),
    MetricDef("eval/unscored", "share", "lower", "Held-out completions without a reward."),
    MetricDef("reward", "reward", "higher", "Mean reward of the step's rollouts.", headline=True),
    MetricDef("reward_std", "reward", "none", "Standard deviation of reward over the step."),
    MetricDef(
        "frac_reward_zero_std",
        "share of groups",
        "lower",
        "Groups whose rollouts all have the same reward: they teach nothing.",
        headline=True,
    ),
    MetricDef("rewards/{name}/mean", "score", "higher", "Mean score of one reward.", headline=True),
    MetricDef("rewards/{name}/std", "score", "none", "Spread of one reward over the step."),
    MetricDef("rewards/{name}/unscored", "share", "lower", "Rollouts this reward failed on."),
    MetricDef(
        "completions/mean_length", "tokens", "none", "Mean completion length.", headline=True
    ),
    MetricDef("completions/min_length", "tokens", "none", "Shortest completion."),
    MetricDef("completions/max_length", "tokens", "none", "Longest completion."),
    MetricDef("completions/clipped_ratio", "share", "lower", "Completions cut at the limit."),
    MetricDef(
        "completions/mean_terminated_length",
        "tokens",
        "none",
        "Mean length of completions that ended by themselves.",
    ),
    MetricDef("completions/mean_length_solved", "tokens", "none", "Mean length of passed ones."),
    MetricDef("completions/mean_length_unsolved", "tokens", "none", "Mean length of failed ones."),
    MetricDef(
        "entropy", "nats", "none", "Mean entropy of the next-token distribution.", headline=True
    ),
    MetricDef("loss", "", "none", "Policy loss; it is no measure of progress in RL."),
    MetricDef("grad_norm", "", "none", "Global gradient norm before clipping.", headline=True),
    MetricDef("learning_rate", "", "none", "Learning rate of the step."),
    MetricDef("kl", "nats", "none", "KL (k3) from the policy to the reference.", headline=True),
    MetricDef("kl_coefficient", "", "none", "Weight of the KL to the reference."),
    MetricDef("ratio/mean", "", "none", "Mean ratio of new to old probability of a token."),
    MetricDef("ratio/max", "", "none", "Largest ratio of new to old probability of a token."),
    MetricDef(
        "ratio/first_deviation_max",
        "nats",
        "lower",
        "Largest log-ratio before the first update; anything but 0 is a fault of the trainer.",
    ),
    MetricDef("clip_ratio/region_mean", "share", "none", "Tokens whose ratio was clipped."),
    MetricDef("clip_ratio/low_mean", "share", "none", "Tokens clipped at the lower bound."),
    MetricDef("clip_ratio/high_mean", "share", "none", "Tokens clipped at the upper bound."),
    MetricDef("advantage/abs_max", "", "none", "Largest advantage in size."),
    MetricDef("advantage/tokens_with_gradient", "share", "higher", "Tokens that carried gradient."),
    MetricDef(
        "sampling/logprob_difference/mean",
        "nats",
        "lower",
        "Mean distance of the sampler's and the trainer's log-probability of a token.",
    ),
    MetricDef(
        "sampling/logprob_difference/max",
        "nats",
        "lower",
        "Largest distance of the sampler's and the trainer's log-probability of a token.",
    ),
    MetricDef(
        "sampling/kl", "nats", "lower", "KL (k3) from the trainer's policy to the sampler's."
    ),
    MetricDef(
        "sampling/importance_weight/mean", "", "none", "Mean weight that corrects for the sampler."
    ),
    MetricDef("dynamic_sampling/rounds", "rounds", "lower", "Rounds of sampling in the step."),
    MetricDef(
        "dynamic_sampling/dead_groups",
        "groups",
        "lower",
        "Groups without differing rewards that were replaced by others.",
    ),
    MetricDef(
        "dynamic_sampling/carried_groups", "groups", "none", "Groups kept for the next step."
    ),
    MetricDef("tokens/unscored_frac", "share of tokens", "lower", "Tokens without a reward."),
    MetricDef("tokens/masked_frac", "share of tokens", "lower", "Tokens left out of the loss."),
    MetricDef("tokens/dead_frac", "share of tokens", "lower", "Tokens whose group taught nothing."),
    MetricDef(
        "tokens/truncated_frac", "share of tokens", "lower", "Tokens of completions that were cut."
    ),
    MetricDef("num_tokens", "tokens", "none", "Completion tokens trained on so far."),
    MetricDef("num_prompts", "prompts", "none", "Prompts used so far."),
    MetricDef("sft/loss", "nats per token", "lower", "Cross-entropy on assistant tokens."),
    MetricDef(
        "sft/token_accuracy", "share of tokens", "higher", "Assistant tokens predicted right."
    ),
    MetricDef("domain/{domain}/reward", "reward", "higher", "Mean reward in one domain."),
    MetricDef("domain/{domain}/prompts", "prompts", "none", "Prompts of one domain in the step."),
    MetricDef(
        "domain/{domain}/frac_reward_zero_std",
        "share of groups",
        "lower",
        "Groups of one domain whose rollouts all have the same reward.",
    ),
    MetricDef(
        "domain/{domain}/completions/mean_length", "tokens", "none", "Mean length in one domain."
    ),
    MetricDef(
        "domain/{domain}/completions/clipped_ratio", "share", "lower", "Cut ones of one domain."
    ),
    MetricDef("domain/{domain}/entropy", "nats", "none", "Mean entropy in one domain."),
    MetricDef("domain/{domain}/eval/pass@1", "share of items", "higher", "Held-out items solved."),
    MetricDef("domain/{domain}/eval/reward", "reward", "higher", "Mean held-out reward."),
    MetricDef("time/step", "s", "lower", "Duration of the step.", wall_clock=True),
    MetricDef("time/rollout", "s", "lower", "Time spent sampling.", wall_clock=True),
    MetricDef("time/reward", "s", "lower", "Time spent scoring.", wall_clock=True),
    MetricDef(
        "time/judge",
        "s",
        "lower",
        "Time of advantages, and of reading what policy and reference say.",
        wall_clock=True,
    ),
    MetricDef("time/update", "s", "lower", "Time of loss, gradient and update.", wall_clock=True),
    MetricDef("time/evaluate", "s", "lower", "Duration of the evaluation.", wall_clock=True),
    MetricDef(
        "perf/rollout_tokens_per_s", "tokens/s", "higher", "Sampling speed.", wall_clock=True
    ),
    MetricDef("perf/train_tokens_per_s", "tokens/s", "higher", "Update speed.", wall_clock=True),
    MetricDef("system/rss", "bytes", "lower", "Memory of the trainer process.", wall_clock=True),
    MetricDef(
        "system/cpu", "% of one core", "none", "Processor time of the trainer.", wall_clock=True
    ),
    MetricDef("system/gpu_memory", "bytes", "none", "Device memory in use.", wall_clock=True),
)


def _pattern(name: str) -> re.Pattern[str]:
    """A catalogue name as a regular expression."""
    parts = re.split(r"(\{name\}|\{domain\})", name)
    return re.compile(
        "".join(
            {"{name}": r"[a-z][a-z0-9_\-]*", "{domain}": r"[a-z0-9_\-/]+"}.get(p, re.escape(p))
            for p in parts
        )
    )


_COMPILED = tuple(
    (_pattern(metric.name), metric)
    for metric in sorted(METRICS, key=lambda metric: -len(re.sub(r"\{\w+\}", "", metric.name)))
)
"""Most specific first: `domain/a/eval/reward` is no training reward of a domain `a/eval`."""


@lru_cache(maxsize=8192)
def find_metric(name: str) -> MetricDef | None:
    """The definition of a metric's name, or None when the catalogue does not know it."""
    for pattern, metric in _COMPILED:
        if pattern.fullmatch(name):
            return metric
    return None


def is_wall_clock(name: str) -> bool:
    """Whether a metric depends on the machine's speed; unknown names do not count."""
    metric = find_metric(name)
    return metric is not None and metric.wall_clock
