from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.training_core.rewards.views import view
from training_core.contract.rewards import MatchReward
from training_core.rewards.completion import LeafScore
from training_core.rewards.match import normalise, score_match

SPEC = MatchReward()
WHOLE = MatchReward(answer_tag="")
EXACT = MatchReward(ignore_case=False, ignore_end_marks=False)


@pytest.mark.parametrize(
    ("text", "answer", "explanation"),
    [
        ("<answer>Paris</answer>", "Paris", "'Paris' equals 'Paris'"),
        ("it is <answer> paris. </answer>", "Paris", "'paris.' equals 'Paris'"),
        ("<answer>NEW\n  YORK</answer>", "New York", "'NEW YORK' equals 'New York'"),
        ("<answer>(b)</answer>", "B", "'(b)' equals 'B'"),
        ("<answer>“yes”</answer>", "yes", "'“yes”' equals 'yes'"),
        ("<answer>ＡＢＣ</answer>", "abc", "'ＡＢＣ' equals 'abc'"),
        ("<answer>cafe\u0301</answer>", "café", "'cafe\u0301' equals 'café'"),
        ("<answer>STRASSE</answer>", "straße", "'STRASSE' equals 'straße'"),
        ("<answer>C#</answer>", "c#", "'C#' equals 'c#'"),
        ("<answer>?</answer>", "?", "'?' equals '?'"),
        ("<answer>yes</answer> or <answer>Yes.</answer>", "yes", "'yes' equals 'yes'"),
    ],
)
def test_right_answers(text: str, answer: str, explanation: str) -> None:
    assert score_match(SPEC, view(text, answer)) == LeafScore("ok", 1.0, explanation)


@pytest.mark.parametrize(
    ("text", "answer", "explanation"),
    [
        ("<answer>Paris, France</answer>", "Paris", "'Paris, France' differs from 'Paris'"),
        ("<answer>C</answer>", "C#", "'C' differs from 'C#'"),
        ("<answer>C</answer>", "C++", "'C' differs from 'C++'"),
        ("<answer>5</answer>", "$5", "'5' differs from '$5'"),
        ("<answer>no one</answer>", "noone", "'no one' differs from 'noone'"),
        ("Paris", "Paris", "no <answer> tag"),
        ("<answer>Paris", "Paris", "<answer> is never closed"),
        ("<answer> </answer>", "Paris", "the answer is empty"),
        (
            "<answer>yes</answer><answer>no</answer>",
            "yes",
            "several different answers: 'yes' and 'no'",
        ),
    ],
)
def test_wrong_answers(text: str, answer: str, explanation: str) -> None:
    assert score_match(SPEC, view(text, answer)) == LeafScore("ok", 0.0, explanation)


def test_without_a_tag_the_whole_completion_counts() -> None:
    assert score_match(WHOLE, view(" Paris.\n", "paris")).value == 1.0
    assert score_match(WHOLE, view("It is Paris.", "paris")).value == 0.0


@pytest.mark.parametrize("text", ["paris", "Paris.", "“Paris”"])
def test_an_exact_match_forgives_nothing_but_white_space(text: str) -> None:
    assert score_match(EXACT, view(f"<answer>{text}</answer>", "Paris")).value == 0.0
    assert score_match(EXACT, view("<answer> Paris\n</answer>", "Paris")).value == 1.0


def test_a_right_answer_of_nothing_is_the_datasets_fault() -> None:
    score = score_match(SPEC, view("<answer>x</answer>", " \n"))
    assert (score.status, score.value) == ("gold_bad", None)


@given(st.text(max_size=40))
def test_the_form_is_the_same_when_it_is_made_twice(text: str) -> None:
    once = normalise(text, SPEC)
    assert normalise(once, SPEC) == once


@given(st.text(min_size=1, max_size=40))
def test_every_answer_equals_itself(text: str) -> None:
    score = score_match(WHOLE, view(text, text))
    assert score.value in {1.0, None}
