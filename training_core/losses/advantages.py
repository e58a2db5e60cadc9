"""Advantages of whole rollouts: how much better each was than the others it is compared with.

Called by `algorithms.advantages`. Plain float64 arithmetic on a handful of numbers: no tensor, no
surprise from float32 cancellation. Grouping is by group id, never by position or by text. An
unscored rollout (None) gets None and is in nobody's mean or deviation. Equal rewards and a group of
one give exactly 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

STD_EPS = 1e-6
"""Added to a standard deviation; values closer together than this, relative to their size, are
equal."""
Rewards = Sequence[float | None]
Advantages = list[float | None]
OfGroup = Callable[[list[float]], list[float]]


def group_std(rewards: Rewards, group_ids: Sequence[str]) -> Advantages:
    """A_i = (r_i - mean_g) / (std_g + eps), std with n - 1.

    Shao et al. 2024 (arXiv 2402.03300), equation 3 with outcome rewards.
    """
    return _within_groups(rewards, group_ids, _standardised)


def group_mean(rewards: Rewards, group_ids: Sequence[str]) -> Advantages:
    """A_i = r_i - mean_g. Liu et al. 2025 (Dr. GRPO, arXiv 2503.20783)."""
    return _within_groups(rewards, group_ids, _centred)


def batch_std(rewards: Rewards, group_ids: Sequence[str]) -> Advantages:
    """A_i = (r_i - mean_g) / (std of all scored rewards of the batch + eps).

    One scale for easy and hard prompts alike (Liu et al. 2025, "Tricks or Traps", arXiv
    2508.08221).
    """
    _, std = mean_and_std([reward for reward in rewards if reward is not None] or [0.0])
    return [
        None if centred is None else centred / (std + STD_EPS) if centred else 0.0
        for centred in group_mean(rewards, group_ids)
    ]


def leave_one_out(rewards: Rewards, group_ids: Sequence[str]) -> Advantages:
    """A_i = r_i - mean of the others of the group. Ahmadian et al. 2024 (RLOO, arXiv 2402.14740).

    Equal to (r_i - mean_g) n / (n - 1).
    """

    def of_group(found: list[float]) -> list[float]:
        scale = len(found) / (len(found) - 1) if len(found) > 1 else 0.0
        return [value * scale for value in _centred(found)]

    return _within_groups(rewards, group_ids, of_group)


def pass_at_k(rewards: Rewards, group_ids: Sequence[str]) -> Advantages:
    """The best rollout gets (best - second) / (std_g + eps), all others 0; a tie gives 0.

    What the best of the group adds to its maximum (Tang et al. 2025, arXiv 2503.19595).
    """

    def of_group(found: list[float]) -> list[float]:
        _, std = mean_and_std(found)
        best, second = (*sorted(found, reverse=True), found[0])[:2] if len(found) > 1 else (0, 0)
        gain = 0.0 if _is_rounding(std, found) else (best - second) / (std + STD_EPS)
        return [gain if value == best else 0.0 for value in found]

    return _within_groups(rewards, group_ids, of_group)


def max_rl(rewards: Rewards, group_ids: Sequence[str]) -> Advantages:
    """A_i = (r_i - mean_g) / mean_g; 0 where the mean is not above 0.

    With rewards 0 and 1 it follows log(pass rate) instead of the pass rate (MaxRL; `max_rl` of
    prime-rl).
    """

    def of_group(found: list[float]) -> list[float]:
        mean, _ = mean_and_std(found)
        return [value / mean if mean > 0 else 0.0 for value in _centred(found)]

    return _within_groups(rewards, group_ids, of_group)


def per_reward(
    components: Mapping[str, Rewards], weights: Mapping[str, float], group_ids: Sequence[str]
) -> Advantages:
    """A = (S - mean S) / (std S + eps) over the batch, S = sum of w_k z_k, z_k = (r_k - mean_g) /
    std_g of reward k.

    Each reward pulls with its weight whatever its scale, and one that is equal inside the group
    does not pull (GDPO, Liu et al. 2026, arXiv 2601.05242). Pulls that cancel give exactly 0. A
    rollout that no reward scored gets None.
    """
    sums: Advantages = [None] * len(group_ids)
    sizes = [0.0] * len(group_ids)
    for name, rewards in components.items():
        for index, z in enumerate(_within_groups(rewards, group_ids, _in_deviations)):
            if z is not None:
                sums[index] = (sums[index] or 0.0) + weights[name] * z
                sizes[index] += abs(weights[name] * z)
    known = [value for value in sums if value is not None]
    mean, std = mean_and_std(known or [0.0])
    if std <= STD_EPS * max(sizes, default=0.0):
        return [None if value is None else 0.0 for value in sums]
    return [None if value is None else (value - mean) / (std + STD_EPS) for value in sums]


def mean_and_std(values: Sequence[float]) -> tuple[float, float]:
    """Mean and standard deviation (n - 1) in two passes; std is exactly 0 for equal values."""
    mean = math.fsum(values) / len(values)
    if len(values) < 2 or max(values) == min(values):
        return values[0] if max(values) == min(values) else mean, 0.0
    return mean, math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1))


def has_spread(rewards: Sequence[float]) -> bool:
    """Whether scored rewards differ by more than rounding; never for fewer than two."""
    return len(rewards) > 1 and not _is_rounding(mean_and_std(rewards)[1], rewards)


def _within_groups(rewards: Rewards, group_ids: Sequence[str], of_group: OfGroup) -> Advantages:
    """Apply a formula to the scored rewards of each group."""
    places: dict[str, list[int]] = {}
    for index, (reward, group_id) in enumerate(zip(rewards, group_ids, strict=True)):
        if reward is not None:
            places.setdefault(group_id, []).append(index)
    found: Advantages = [None] * len(rewards)
    for members in places.values():
        values = [value for index in members if (value := rewards[index]) is not None]
        for index, advantage in zip(members, of_group(values), strict=True):
            found[index] = advantage
    return found


def _centred(found: list[float]) -> list[float]:
    """Differences from the mean; 0 where the spread is nothing but rounding."""
    mean, std = mean_and_std(found)
    return [0.0 if _is_rounding(std, (mean, value)) else value - mean for value in found]


def _standardised(found: list[float]) -> list[float]:
    """Differences from the mean in deviations."""
    _, std = mean_and_std(found)
    return [value / (std + STD_EPS) for value in _centred(found)]


def _in_deviations(found: list[float]) -> list[float]:
    """The same without the addend, which would leave a trace where two rewards cancel."""
    _, std = mean_and_std(found)
    return [value / std if value else 0.0 for value in _centred(found)]


def _is_rounding(std: float, values: Sequence[float]) -> bool:
    """Whether a spread is too small, against the values themselves, to mean anything."""
    return std <= STD_EPS * max(map(abs, values))
