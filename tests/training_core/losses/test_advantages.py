"""Golden vectors, worked out by hand: mean .25 and std (n - 1) .5 for the rewards 1, 0, 0, 0."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import pytest

from training_core.losses.advantages import (
    STD_EPS,
    Advantages,
    Rewards,
    batch_std,
    group_mean,
    group_std,
    has_spread,
    leave_one_out,
    max_rl,
    mean_and_std,
    pass_at_k,
    per_reward,
)

Estimate = Callable[[Rewards, Sequence[str]], Advantages]
ONE_GROUP = ["g"] * 4


def per_single_reward(rewards: Rewards, group_ids: Sequence[str]) -> Advantages:
    return per_reward({"only": rewards}, {"only": 1.0}, group_ids)


ALL: list[Estimate] = [
    group_std,
    group_mean,
    batch_std,
    leave_one_out,
    pass_at_k,
    max_rl,
    per_single_reward,
]
each = pytest.mark.parametrize("estimate", ALL, ids=lambda f: f.__name__)


@pytest.mark.parametrize(
    ("estimate", "expected"),
    [
        (group_std, [1.499997, -0.499999, -0.499999, -0.499999]),
        (group_mean, [0.75, -0.25, -0.25, -0.25]),
        (batch_std, [1.499997, -0.499999, -0.499999, -0.499999]),
        (leave_one_out, [1.0, -1 / 3, -1 / 3, -1 / 3]),
        (pass_at_k, [1 / (0.5 + STD_EPS), 0.0, 0.0, 0.0]),
        (max_rl, [3.0, -1.0, -1.0, -1.0]),
    ],
)
def test_golden(estimate: Estimate, expected: list[float]) -> None:
    assert estimate([1.0, 0.0, 0.0, 0.0], ONE_GROUP) == pytest.approx(expected, abs=1e-9)


@each
@pytest.mark.parametrize("reward", [0.0, 1.0, 0.1, -0.3, 1e-12, 1e12])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 8])
def test_equal_rewards_give_exactly_nothing(estimate: Estimate, reward: float, size: int) -> None:
    assert estimate([reward] * size, ["g"] * size) == [0.0] * size


@each
def test_rewards_that_differ_by_rounding_alone_are_equal(estimate: Estimate) -> None:
    """0.1 + 0.2 is 0.30000000000000004: a sum of weighted rewards must not make a signal of it."""
    assert estimate([0.1 + 0.2, 0.3, 0.3], ["g"] * 3) == [0.0, 0.0, 0.0]


def test_a_small_spread_on_a_large_level_does_not_cancel() -> None:
    """E[x^2] - E[x]^2 in float32 loses this; two passes do not."""
    found = group_std([1000.0, 1000.1], ["g"] * 2)
    assert found == pytest.approx([-math.sqrt(0.5), math.sqrt(0.5)], abs=1e-4)
    assert group_mean([1000.0, 1000.1], ["g"] * 2) == pytest.approx([-0.05, 0.05], abs=1e-9)


@each
def test_unscored_rollouts_are_in_no_baseline(estimate: Estimate) -> None:
    with_gaps = estimate([1.0, None, 0.0, None, 0.0, 0.0], ["g"] * 6)
    without = estimate([1.0, 0.0, 0.0, 0.0], ONE_GROUP)
    assert with_gaps == [without[0], None, without[1], None, without[2], without[3]]


@each
def test_a_group_without_any_score_has_no_advantage(estimate: Estimate) -> None:
    assert estimate([None, None], ["g"] * 2) == [None, None]


@each
def test_a_group_of_one_has_nothing_to_compare_with(estimate: Estimate) -> None:
    assert estimate([5.0, 1.0, None], ["a", "b", "b"]) == [0.0, 0.0, None]


@each
def test_no_rollouts_at_all(estimate: Estimate) -> None:
    assert estimate([], []) == []


def test_groups_are_told_apart_by_id_not_by_position() -> None:
    rewards = [1.0, 10.0, 0.0, 30.0, 0.0, 20.0, 0.0]
    interleaved = group_mean(rewards, ["a", "b", "a", "b", "a", "b", "a"])
    assert interleaved == [0.75, -10.0, -0.25, 10.0, -0.25, 0.0, -0.25]


@each
def test_lengths_must_agree(estimate: Estimate) -> None:
    with pytest.raises(ValueError, match="zip"):
        estimate([1.0, 2.0], ["g"])


def test_one_scale_for_the_whole_batch() -> None:
    """Two groups, means .5 and 10: centred +-.5 and +-1, all over the deviation of 1, 0, 11, 9."""
    found = batch_std([1.0, 0.0, 11.0, 9.0], ["a", "a", "b", "b"])
    std = mean_and_std([1.0, 0.0, 11.0, 9.0])[1]
    assert found == pytest.approx([x / (std + STD_EPS) for x in (0.5, -0.5, 1.0, -1.0)])


def test_a_tie_for_the_best_adds_nothing_to_the_maximum() -> None:
    assert pass_at_k([1.0, 1.0, 0.0, 0.0], ONE_GROUP) == [0.0] * 4


def test_max_rl_where_no_reward_is_good() -> None:
    assert max_rl([-1.0, -3.0], ["g"] * 2) == [0.0, 0.0]


def test_per_reward_is_not_ruled_by_the_larger_scale() -> None:
    """Scores 0 to 1 and 0 to 100 pull equally, where their sum would follow the second alone."""
    small, large = [1.0, 0.0, 1.0, 0.0], [0.0, 100.0, 100.0, 0.0]
    found = per_reward({"s": small, "l": large}, {"s": 1.0, "l": 1.0}, ONE_GROUP)
    assert found[0] == pytest.approx(found[1], abs=1e-9)
    assert found[2] == pytest.approx(-found[3])  # type: ignore[operator]
    summed = group_std([a + b for a, b in zip(small, large, strict=True)], ONE_GROUP)
    assert abs(summed[0] - summed[1]) > 1  # type: ignore[operator]


def test_a_reward_that_is_equal_in_the_group_does_not_pull() -> None:
    alone = per_reward({"a": [1.0, 0.0, 0.0, 0.0]}, {"a": 1.0}, ONE_GROUP)
    both = per_reward({"a": [1.0, 0.0, 0.0, 0.0], "b": [0.1] * 4}, {"a": 1.0, "b": 5.0}, ONE_GROUP)
    assert both == alone
    assert alone == pytest.approx(group_std([1.0, 0.0, 0.0, 0.0], ONE_GROUP), abs=1e-5)


def test_per_reward_weighs() -> None:
    one, other = [1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]
    found = per_reward({"a": one, "b": other}, {"a": 2.0, "b": -1.0}, ONE_GROUP)
    z = [1.499997, -0.499999, -0.499999, -0.499999]
    sums = [2 * z[0] - z[1], 2 * z[1] - z[0], z[1], z[1]]
    mean, std = mean_and_std(sums)
    assert found == pytest.approx([(s - mean) / (std + STD_EPS) for s in sums], abs=1e-6)


def test_per_reward_uses_what_a_rollout_has() -> None:
    """One reward failed on the first rollout; the other still has its say."""
    found = per_reward(
        {"a": [None, 1.0, 0.0], "b": [1.0, 0.0, 0.0]}, {"a": 1.0, "b": 1.0}, ["g"] * 3
    )
    assert None not in found
    assert found[0] > 0  # type: ignore[operator]


def test_mean_and_std_of_one_value_and_of_four() -> None:
    assert mean_and_std([0.1]) == (0.1, 0.0)
    assert mean_and_std([0.1] * 3) == (0.1, 0.0)
    assert mean_and_std([1.0, 0.0, 0.0, 0.0]) == (0.25, 0.5)


def test_spread() -> None:
    assert has_spread([0.0, 1.0])
    assert not has_spread([0.3, 0.1 + 0.2])
    assert not has_spread([5.0])
    assert not has_spread([])
