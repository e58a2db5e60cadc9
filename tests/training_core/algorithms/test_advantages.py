"""From scored rollouts to token advantages: who has a say, and with what."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch

from tests.training_core.algorithms.rollout_groups import make_rollout
from tests.training_core.algorithms.specs import each_algorithm
from training_core.algorithms.advantages import (
    Earned,
    Judged,
    earned_by,
    overlong_penalty,
    token_advantages,
)
from training_core.contract.algorithms import (
    DapoSpec,
    GroupAdvantage,
    GroupRelativeSpec,
    GrpoSpec,
    ReinforcePlusPlusBaselineSpec,
    ReinforcePlusPlusSpec,
    RlooSpec,
)
from training_core.contract.rollouts import RewardScore


def judged(
    reward: float | None,
    tokens: int = 2,
    group: str = "g",
    penalties: Sequence[float] | None = None,
) -> Judged:
    penalty_N = None if penalties is None else torch.tensor(penalties)
    return Judged(group, tokens, None if reward is None else Earned(reward), penalty_N)


def lists(found: Sequence[torch.Tensor | None]) -> list[list[float] | None]:
    return [None if row is None else row.tolist() for row in found]


@each_algorithm
def test_one_advantage_for_each_token_and_none_without_a_say(spec: GroupRelativeSpec) -> None:
    found = token_advantages(spec, [judged(1.0, 3), judged(None, 4), judged(0.0, 1)])
    assert [None if row is None else len(row) for row in found] == [3, None, 1]
    assert all(row.dtype == torch.float64 for row in found if row is not None)
    assert bool((found[0] > 0).all())  # type: ignore[operator]
    assert bool((found[2] < 0).all())  # type: ignore[operator]


@each_algorithm
@pytest.mark.parametrize("reward", [0.0, 0.1, -2.0])
def test_equal_rewards_give_exactly_nothing(spec: GroupRelativeSpec, reward: float) -> None:
    groups = [judged(reward, n, group) for group in "ab" for n in (1, 3, 0)]
    found = token_advantages(spec, groups)
    assert all(row is not None and not row.any() for row in found)


@each_algorithm
def test_nothing_to_judge(spec: GroupRelativeSpec) -> None:
    assert token_advantages(spec, []) == []
    assert token_advantages(spec, [judged(None), judged(None)]) == [None, None]


def test_each_group_is_its_own_measure() -> None:
    spec = GrpoSpec(advantage="group_mean")
    found = token_advantages(
        spec,
        [judged(1.0, 1, "a"), judged(10.0, 1, "b"), judged(0.0, 1, "a"), judged(30.0, 1, "b")],
    )
    assert lists(found) == [[0.5], [-10.0], [-0.5], [10.0]]


def test_a_divergence_in_the_reward_of_a_whole_rollout_is_summed() -> None:
    """Leave-one-out of 1 - (.5 + .25) and 0 - (-.25)."""
    found = token_advantages(
        RlooSpec(), [judged(1.0, 2, penalties=[0.5, 0.25]), judged(0.0, 1, penalties=[-0.25])]
    )
    assert lists(found) == [[0.0, 0.0], [0.0]]
    found = token_advantages(
        RlooSpec(), [judged(1.0, 2, penalties=[0.25, 0.25]), judged(0.0, 1, penalties=[0.0])]
    )
    assert lists(found) == [[0.5, 0.5], [-0.5]]


def test_returns_of_tokens_are_whitened_over_the_batch() -> None:
    """What is still to come: .75 and 1 less .25; 0. Mean and deviation over three tokens."""
    found = token_advantages(
        ReinforcePlusPlusSpec(),
        [judged(1.0, 2, "a", [0.25, 0.0]), judged(0.0, 1, "b", [0.0])],
    )
    tokens = torch.tensor([0.75, 1.0, 0.0]).double()
    expected = (tokens - tokens.mean()) / (tokens.var() + 1e-8).sqrt()
    assert torch.cat([row for row in found if row is not None]).tolist() == pytest.approx(
        expected.tolist()
    )


def test_the_groups_mean_comes_off_before_the_batch_is_whitened() -> None:
    found = token_advantages(
        ReinforcePlusPlusBaselineSpec(),
        [judged(1.0, 2, "a"), judged(0.0, 1, "a"), judged(5.0, 1, "b"), judged(5.0, 1, "b")],
    )
    tokens = torch.tensor([0.5, 0.5, -0.5, 0.0, 0.0]).double()
    expected = (tokens - tokens.mean()) / (tokens.var() + 1e-8).sqrt()
    assert torch.cat([row for row in found if row is not None]).tolist() == pytest.approx(
        expected.tolist()
    )


def test_rewards_one_by_one() -> None:
    """Two leaves of very different size pull alike; a failed leaf leaves the others their say."""

    def scored(small: float, large: float | None) -> Judged:
        scores = tuple(
            RewardScore(
                name=name,
                weight=1.0,
                status="error" if value is None else "ok",
                value=value,
                explanation="",
            )
            for name, value in (("small", small), ("large", large))
        )
        return Judged("g", 1, Earned(1.0, scores=scores))

    spec = GrpoSpec(advantage="per_reward")
    found = token_advantages(spec, [scored(1.0, 0.0), scored(0.0, 100.0)])
    assert torch.cat([row for row in found if row is not None]).abs().max() < 1e-5
    partly = token_advantages(spec, [scored(1.0, None), scored(0.0, 100.0), scored(0.0, 0.0)])
    assert all(row is not None for row in partly)
    assert float(partly[0]) > float(partly[2])  # type: ignore[arg-type]


def test_the_overlong_penalty_is_one_of_the_rewards_one_by_one() -> None:
    spec = GrpoSpec(advantage="per_reward", overlong_frac=0.5)
    rollouts = [make_rollout([5] * n, 1.0) for n in (5, 10)]
    found = token_advantages(
        spec, [Judged("g", r.tokens, earned_by(spec, r, 10)) for r in rollouts]
    )
    assert float(found[0][0]) > 0 > float(found[1][0])  # type: ignore[index]


@pytest.mark.parametrize(
    ("tokens", "penalty"), [(80, 0.0), (90, 0.5), (100, 1.0), (10, 0.0), (81, 0.05)]
)
def test_overlong_golden(tokens: int, penalty: float) -> None:
    """Limit 100, buffer 20."""
    assert overlong_penalty(DapoSpec(), tokens, 100) == pytest.approx(penalty)
    half = DapoSpec(overlong_penalty=0.5)
    assert overlong_penalty(half, tokens, 100) == pytest.approx(penalty / 2)
    assert overlong_penalty(GrpoSpec(), tokens, 100) == 0.0


def test_who_has_a_say() -> None:
    cut = make_rollout([5] * 10, 1.0, finish="length")
    assert earned_by(GrpoSpec(), cut, 10) == Earned(1.0)
    assert earned_by(GrpoSpec(mask_truncated=True), cut, 10) is None
    assert earned_by(DapoSpec(), cut, 10) == Earned(0.0, overlong=1.0)
    assert earned_by(DapoSpec(), make_rollout([5] * 10), 10) is None


@pytest.mark.parametrize("advantage", ["group_std", "leave_one_out", "whitened"])
def test_a_masked_rollout_is_in_no_baseline(advantage: GroupAdvantage) -> None:
    spec = GrpoSpec(advantage=advantage, mask_truncated=True)
    with_it = token_advantages(spec, [judged(1.0), judged(None), judged(0.0), judged(0.0)])
    without = token_advantages(spec, [judged(1.0), judged(0.0), judged(0.0)])
    assert lists(with_it) == [*lists(without)[:1], None, *lists(without)[1:]]
