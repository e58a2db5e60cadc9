from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.training_core.rewards.views import view
from training_core.contract.rewards import CorrectnessReward
from training_core.rewards.completion import LeafScore
from training_core.rewards.correctness import score_correctness

SPEC = CorrectnessReward()
LAST = CorrectnessReward(answer_tag="")


@pytest.mark.parametrize(
    ("text", "answer", "explanation"),
    [
        ("<answer>15</answer>", "15", "answer 15 equals 15"),
        ("so it is\n<answer> 15.0 </answer>", "15", "answer 15.0 equals 15"),
        ("<answer>1,000</answer>", "1000", "answer 1,000 equals 1000"),
        ("<answer>−5</answer>", "-5", "answer −5 equals -5"),
        ("<answer>5</answer> or <answer>5.0</answer>", "5", "answer 5 equals 5"),
        ("<answer>1/2</answer>", "0.5", "answer 1/2 equals 0.5"),
        ("<answer>$29.00</answer>", "29", "answer $29.00 equals 29"),
        ("<answer>5 cm</answer>", "5", "answer 5 cm equals 5"),
        ("<answer>5</answer>", "5 cm", "answer 5 equals 5 cm"),
        ("<answer>1,2,3<answer>15</answer>", "15", "answer 15 equals 15"),
        ("<answer>15</answer></answer>", "15", "answer 15 equals 15"),
    ],
)
def test_right_answers(text: str, answer: str, explanation: str) -> None:
    assert score_correctness(SPEC, view(text, answer)) == LeafScore("ok", 1.0, explanation)


@pytest.mark.parametrize(
    ("text", "answer", "explanation"),
    [
        ("<answer>14</answer>", "15", "answer 14 differs from 15"),
        ("<answer>151</answer>", "51", "answer 151 differs from 51"),
        ("<answer>42.</answer>", "142", "answer 42. differs from 142"),
        ("<answer>10%</answer>", "10", "answer 10% differs from 10"),
        ("<answer>5 m</answer>", "5 cm", "answer 5 m differs from 5 cm"),
        ("15", "15", "no <answer> tag"),
        ("<Answer>15</Answer>", "15", "no <answer> tag"),
        ("<answer>15", "15", "<answer> is never closed"),
        ("</answer>15<answer>", "15", "<answer> is never closed"),
        ("<answer></answer>", "15", "<answer> is empty"),
        ("<answer> \n</answer>", "15", "<answer> is empty"),
        ("<answer>fifteen</answer>", "15", "answer 'fifteen' is not a number"),
        ("<answer>3+12</answer>", "15", "answer '3+12' is not a number"),
        ("<answer>15 16</answer>", "15", "answer '15 16' is not a number"),
        (
            "<answer>14</answer><answer>15</answer>",
            "15",
            "several different answers: 14 and 15",
        ),
        (
            "<answer>15</answer>" + "".join(f"<answer>{n}</answer>" for n in range(30)),
            "15",
            "several different answers: 15 and 0",
        ),
        ("<answer>15</answer><answer>x</answer>", "15", "answer 'x' is not a number"),
    ],
)
def test_wrong_answers(text: str, answer: str, explanation: str) -> None:
    assert score_correctness(SPEC, view(text, answer)) == LeafScore("ok", 0.0, explanation)


@pytest.mark.parametrize("gold", ["", "None", "THOSE FROM MARS", "1, 2", "1e9999", "nan"])
def test_a_right_answer_that_is_no_number_leaves_the_rollout_unscored(gold: str) -> None:
    for text in (f"<answer>{gold}</answer>", "<answer>5</answer>", ""):
        score = score_correctness(SPEC, view(text, gold))
        assert (score.status, score.value) == ("gold_bad", None)
        assert "is not a number" in score.explanation


@pytest.mark.parametrize(
    ("answer", "gold", "equal"),
    [("10", "10%", 1), ("0.1", "10%", 1), ("10%", "10%", 1), ("10%", "0.1", 1), ("1%", "10%", 0)],
)
def test_percent(answer: str, gold: str, equal: float) -> None:
    assert score_correctness(SPEC, view(f"<answer>{answer}</answer>", gold)).value == equal


@pytest.mark.parametrize(
    ("tolerance", "answer", "gold", "equal"),
    [
        (0.0, "0.3333", "1/3", 0),
        (0.01, "0.3333", "1/3", 1),
        (0.1, "110", "100", 1),
        (0.1, "90", "100", 1),
        (0.1, "110.0001", "100", 0),
        (0.3, "1.3", "1", 1),
        (0.1, "-90", "-100", 1),
        (0.1, "-90", "100", 0),
        (1.0, "0.0001", "0", 0),
        (1.0, "0", "0", 1),
    ],
)
def test_tolerance_is_relative_to_the_right_answer(
    tolerance: float, answer: str, gold: str, equal: float
) -> None:
    spec = CorrectnessReward(tolerance=tolerance)
    assert score_correctness(spec, view(f"<answer>{answer}</answer>", gold)).value == equal


@pytest.mark.parametrize(
    ("text", "gold"),
    [
        ("The answer is 72, in total.", "72"),
        ("It costs $29.00", "29"),
        ("8,000 people", "8000"),
        ("so 3 + 12 = 15.", "15"),
        ("from 5 to -3", "-3"),
        ("from 5 to −3", "-3"),
        ("about 10%", "10%"),
        ("that is 1/2", "0.5"),
        ("3-5", "5"),
        ("step2 gives 7", "7"),
    ],
)
def test_without_a_tag_the_last_number_counts(text: str, gold: str) -> None:
    assert score_correctness(LAST, view(text, gold)).value == 1.0


@pytest.mark.parametrize("text", ["", "none at all", "...", "version2"])
def test_without_a_tag_and_without_a_number(text: str) -> None:
    score = score_correctness(LAST, view(text))
    assert score == LeafScore("ok", 0.0, "no number in the completion")


@given(st.integers(-(10**9), 10**9), st.integers(-(10**9), 10**9))
def test_equal_exactly_when_the_numbers_are(answer: int, gold: int) -> None:
    score = score_correctness(SPEC, view(f"<answer>{answer:,}</answer>", str(gold)))
    assert score.value == float(answer == gold)


@given(st.lists(st.integers(0, 50), min_size=2, max_size=20, unique=True))
def test_a_spray_of_different_answers_never_pays(answers: list[int]) -> None:
    text = " ".join(f"<answer>{number}</answer>" for number in answers)
    assert score_correctness(SPEC, view(text, str(answers[0]))).value == 0.0
