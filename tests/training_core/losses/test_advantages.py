"""Golden vectors, worked out by hand: mean .25 and std (n - 1) .5 for the rewards 1, 0, 0, 0."""

from __future__ import annotations

import math

import pytest

from training_core.losses.advantages import STD_EPS, group_advantages, mean_and_std

ONE_GROUP = ["g"] * 4


def test_group_std_golden() -> None:
    found = group_advantages([1.0, 0.0, 0.0, 0.0], ONE_GROUP, scale="group_std")
    assert found == pytest.approx([1.499997, -0.499999, -0.499999, -0.499999], abs=1e-9)
    assert found == pytest.approx([0.75 / (0.5 + STD_EPS)] + [-0.25 / (0.5 + STD_EPS)] * 3)


def test_group_mean_golden() -> None:
    found = group_advantages([1.0, 0.0, 0.0, 0.0], ONE_GROUP, scale="group_mean")
    assert found == [0.75, -0.25, -0.25, -0.25]


@pytest.mark.parametrize("scale", ["group_std", "group_mean"])
@pytest.mark.parametrize("reward", [0.0, 1.0, 0.1, -0.3, 1e-12, 1e12])
@pytest.mark.parametrize("size", [2, 3, 7, 8])
def test_equal_rewards_give_exactly_nothing(scale: str, reward: float, size: int) -> None:
    found = group_advantages([reward] * size, ["g"] * size, scale=scale)  # type: ignore[arg-type]
    assert found == [0.0] * size


@pytest.mark.parametrize("scale", ["group_std", "group_mean"])
def test_rewards_that_differ_by_rounding_alone_are_equal(scale: str) -> None:
    """0.1 + 0.2 is 0.30000000000000004: a sum of weighted rewards must not make a signal of it."""
    found = group_advantages([0.1 + 0.2, 0.3, 0.3], ["g"] * 3, scale=scale)  # type: ignore[arg-type]
    assert found == [0.0, 0.0, 0.0]


def test_a_small_spread_on_a_large_level_does_not_cancel() -> None:
    """E[x^2] - E[x]^2 in float32 loses this; two passes do not."""
    found = group_advantages([1000.0, 1000.1], ["g"] * 2, scale="group_std")
    assert found == pytest.approx([-math.sqrt(0.5), math.sqrt(0.5)], abs=1e-4)
    centred = group_advantages([1000.0, 1000.1], ["g"] * 2, scale="group_mean")
    assert centred == pytest.approx([-0.05, 0.05], abs=1e-9)


def test_unscored_rollouts_are_in_neither_mean_nor_std() -> None:
    with_gaps = group_advantages([1.0, None, 0.0, None, 0.0, 0.0], ["g"] * 6, scale="group_std")
    without = group_advantages([1.0, 0.0, 0.0, 0.0], ONE_GROUP, scale="group_std")
    assert with_gaps == [without[0], None, without[1], None, without[2], without[3]]


def test_a_group_without_any_score_has_no_advantage() -> None:
    assert group_advantages([None, None], ["g"] * 2, scale="group_std") == [None, None]


@pytest.mark.parametrize("scale", ["group_std", "group_mean"])
def test_a_group_of_one_has_nothing_to_compare_with(scale: str) -> None:
    found = group_advantages([5.0, 1.0, None], ["a", "b", "b"], scale=scale)  # type: ignore[arg-type]
    assert found == [0.0, 0.0, None]


def test_groups_are_told_apart_by_id_not_by_position() -> None:
    rewards = [1.0, 10.0, 0.0, 30.0, 0.0, 20.0, 0.0]
    interleaved = group_advantages(rewards, ["a", "b", "a", "b", "a", "b", "a"], scale="group_mean")
    assert interleaved == [0.75, -10.0, -0.25, 10.0, -0.25, 0.0, -0.25]


def test_lengths_must_agree() -> None:
    with pytest.raises(ValueError, match="zip"):
        group_advantages([1.0, 2.0], ["g"], scale="group_std")


def test_mean_and_std_of_one_value_and_of_four() -> None:
    assert mean_and_std([0.1]) == (0.1, 0.0)
    assert mean_and_std([0.1] * 3) == (0.1, 0.0)
    assert mean_and_std([1.0, 0.0, 0.0, 0.0]) == (0.25, 0.5)
