"""Replies whose worth is known, under rewards that fit the data and under those that do not."""

from __future__ import annotations

import pytest

from training_core.contract.domains import DatasetDomain, DatasetRecord, Message
from training_core.contract.rewards import (
    CorrectnessReward,
    FormatReward,
    MatchReward,
    RewardSpec,
    WeightedSumReward,
    WeightedTerm,
)
from webapp.datasets.known_replies import (
    KnownReply,
    all_answers_are_equal,
    form_worth,
    score_known_replies,
)

DOMAIN = DatasetDomain(
    name="mine", dataset_version="x", demonstration_template="<answer>{answer}</answer>"
)


def tagged(leaf: CorrectnessReward | MatchReward) -> RewardSpec:
    terms = (WeightedTerm(weight=0.7, node=leaf), WeightedTerm(weight=0.3, node=FormatReward()))
    return RewardSpec(root=WeightedSumReward(terms=terms))


NUMBERS, WORDS = tagged(CorrectnessReward()), tagged(MatchReward())


def rows(*answers: str, demonstration: str | None = None) -> list[DatasetRecord]:
    return [
        DatasetRecord(
            record_id=str(place),
            messages=(Message(role="user", content=f"question {place}"),),
            answer=answer,
            demonstration=demonstration,
        )
        for place, answer in enumerate(answers)
    ]


def by_title(reward: RewardSpec, records: list[DatasetRecord]) -> dict[str, KnownReply]:
    return {reply.title: reply for reply in score_known_replies(reward, DOMAIN, records)}


def test_right_wrong_and_empty_replies_score_what_they_should() -> None:
    found = by_title(NUMBERS, rows("4", "5", "6"))
    means = {title: reply.mean for title, reply in found.items()}
    assert means == {"The right answer": 1.0, "A wrong answer": 0.3, "No answer": 0.0}
    assert all(reply.is_right and not reply.odd for reply in found.values())
    assert found["The right answer"].example == "<answer>4</answer>"
    assert found["A wrong answer"].example == "<answer>5</answer>"
    assert found["A wrong answer"].expected == "at most 0.3, for the form"


def test_words_under_a_reward_for_numbers_are_found_with_the_reason() -> None:
    right = by_title(NUMBERS, rows("Paris", "5", "Rome"))["The right answer"]
    assert not right.is_right
    assert right.words.startswith("2 of 3 rows differ.")
    assert [odd.answer for odd in right.odd] == ["Paris", "Rome"]
    assert "Paris" in right.odd[0].why
    assert right.mean == 1.0, "an unscored reply is not a 0"


def test_an_answer_that_closes_its_own_tag_is_found() -> None:
    right = by_title(WORDS, rows("a</answer> b", "c"))["The right answer"]
    assert [odd.answer for odd in right.odd] == ["a</answer> b"]


def test_worked_replies_in_another_form_are_found() -> None:
    found = by_title(NUMBERS, rows("4", "5", demonstration="So it is #### 4"))
    assert not found["Worked replies"].is_right
    assert "The warm-up imitates these replies" in found["Worked replies"].words
    good = by_title(NUMBERS, rows("4", "4", demonstration="<answer>4</answer>"))
    assert good["Worked replies"].is_right
    assert "A wrong answer" not in good, "there is no other answer to take"


def test_a_reward_that_takes_everything_is_found() -> None:
    lax = RewardSpec(root=CorrectnessReward(answer_tag="", tolerance=1.0))
    wrong = by_title(lax, rows("4", "5", "6"))["A wrong answer"]
    assert not wrong.is_right
    assert "Wrong answers are rewarded" in wrong.words


def test_many_odd_rows_are_counted_and_a_few_are_shown() -> None:
    right = by_title(NUMBERS, rows(*(f"word {n}" for n in range(50))))["The right answer"]
    assert right.words.startswith("50 of 50 rows")
    assert (len(right.odd), right.mean) == (3, None)


@pytest.mark.parametrize(
    ("answers", "equal"),
    [(("4", "4 "), True), (("Yes", "yes"), True), (("4", "5"), False), ((), False)],
)
def test_one_answer_for_all_rows(answers: tuple[str, ...], equal: bool) -> None:
    assert all_answers_are_equal(rows(*answers)) is equal


def test_nothing_is_said_without_records_and_the_form_is_worth_its_weight() -> None:
    assert score_known_replies(NUMBERS, DOMAIN, []) == []
    assert form_worth(WORDS) == 0.3
    assert form_worth(RewardSpec(root=FormatReward())) == 1.0
    assert form_worth(RewardSpec(root=MatchReward())) == 0.0
