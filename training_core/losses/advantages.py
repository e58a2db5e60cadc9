"""Advantages: how much better a rollout was than the others of its group.

Called by `algorithms`. Plain float64 arithmetic on a handful of numbers: no tensor, no surprise
from float32 cancellation. Grouping is by group id, never by position or by text.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

STD_EPS = 1e-6
"""Added to the standard deviation; rewards closer together than this, relative to their size, are
equal."""


def group_advantages(
    rewards: Sequence[float | None],
    group_ids: Sequence[str],
    *,
    scale: Literal["group_std", "group_mean"],
) -> list[float | None]:
    """A_i = (r_i - mean_g) / (std_g + eps), or without the division for `group_mean`.

    mean and std (n - 1) run over the scored rollouts of the group. Equal rewards and a group of
    one give exactly 0; an unscored rollout gives None and is in neither mean nor std.
    Shao et al. 2024 (arXiv 2402.03300), equation 3 with outcome rewards; `group_mean` is Dr. GRPO
    (Liu et al. 2025, arXiv 2503.20783).
    """
    groups: dict[str, list[float]] = {}
    for reward, group_id in zip(rewards, group_ids, strict=True):
        if reward is not None:
            groups.setdefault(group_id, []).append(reward)
    moments = {group_id: mean_and_std(found) for group_id, found in groups.items()}
    return [
        None if reward is None else _advantage(reward, *moments[group_id], scale)
        for reward, group_id in zip(rewards, group_ids, strict=True)
    ]


def mean_and_std(values: Sequence[float]) -> tuple[float, float]:
    """Mean and standard deviation (n - 1) in two passes; std is exactly 0 for equal values."""
    mean = math.fsum(values) / len(values)
    if len(values) < 2 or max(values) == min(values):
        return values[0] if max(values) == min(values) else mean, 0.0
    return mean, math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1))


def _advantage(
    reward: float, mean: float, std: float, scale: Literal["group_std", "group_mean"]
) -> float:
    """One rollout's advantage; 0 where the group's spread is nothing but rounding."""
    if std <= STD_EPS * max(abs(mean), abs(reward)):
        return 0.0
    return (reward - mean) / (std + STD_EPS) if scale == "group_std" else reward - mean
