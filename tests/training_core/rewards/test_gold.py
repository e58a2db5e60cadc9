from __future__ import annotations

from training_core.contract.rewards import (
    CorrectnessReward,
    FormatReward,
    RewardSpec,
    WeightedSumReward,
    WeightedTerm,
)
from training_core.rewards.gold import GoldFault, gold_faults

SPEC = RewardSpec(
    root=WeightedSumReward(
        terms=(
            WeightedTerm(weight=1, node=CorrectnessReward(name="number")),
            WeightedTerm(weight=1, node=FormatReward()),
        )
    )
)


def test_answers_that_are_no_numbers_are_counted_for_the_reward_that_needs_them() -> None:
    assert gold_faults(SPEC, ["15", "Paris", "1/2", ""]) == [
        GoldFault("number", 2, "the right answer 'Paris' is not a number")
    ]


def test_good_answers_have_no_faults() -> None:
    assert gold_faults(SPEC, ["15", "1,000", "50%"]) == []
    assert gold_faults(RewardSpec(root=FormatReward()), ["Paris"]) == []
