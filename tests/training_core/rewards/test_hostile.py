"""Hostile completions through every leaf: no exception, a finite score, a short explanation."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.training_core.rewards.views import view
from training_core.contract.rewards import (
    CorrectnessReward,
    FormatReward,
    LengthReward,
    MatchReward,
    RewardSpec,
    WeightedSumReward,
    WeightedTerm,
)
from training_core.rewards.tree import score_tree

EVERY_LEAF = RewardSpec(
    root=WeightedSumReward(
        terms=(
            WeightedTerm(weight=1, node=CorrectnessReward()),
            WeightedTerm(weight=1, node=CorrectnessReward(name="last-number", answer_tag="")),
            WeightedTerm(weight=1, node=FormatReward()),
            WeightedTerm(
                weight=1,
                node=FormatReward(name="open", tags=("think", "answer"), allow_text_outside=True),
            ),
            WeightedTerm(weight=1, node=LengthReward()),
            WeightedTerm(weight=1, node=MatchReward()),
            WeightedTerm(weight=1, node=MatchReward(name="whole", answer_tag="")),
        )
    )
)

HOSTILE = [
    "",
    " ",
    "\0",
    "\ufffd" * 10,
    "None",
    "null",
    "nan",
    "inf",
    "-inf",
    "1e999999999",
    "9" * 10_000,
    "a" * 10_000,
    "<" * 10_000,
    "<answer>" * 2_000,
    "</answer>" * 2_000,
    "<answer>" * 1_000 + "15" + "</answer>" * 1_000,
    "".join(f"<answer>{n}</answer>" for n in range(1_000)),
    "<answer>15" + "0" * 10_000 + "</answer>",
    "<answer>" + "1," * 5_000 + "</answer>",
    "<answer>" + "1 " * 5_000 + "</answer>",
    "<answer>" + "(" * 500 + "15" + ")" * 499 + "</answer>",
    "<answer>" + "**" * 400 + "</answer>",
    "<answer>" + "\\frac{1}{" * 100 + "2" + "}" * 100 + "</answer>",
    "<answer>" + "x=" * 400 + "</answer>",
    "<answer>" + "½" * 1_000 + "</answer>",
    "<answer>" + "1/" * 450 + "2</answer>",
    "<answer>٩٩٩</answer>",
    "<answer>\u202e51\u202c</answer>",
    "<answer>\u200f15\u200e</answer>",
    "<answer>1\u200b5</answer>",
    "<answer>15\u0301</answer>",
    "<answer>1\ud8005</answer>",
    "<аnswer>15</аnswer>",
    "<answer>15</answer>" * 500,
    "-" * 10_000,
    "1-" * 5_000,
    "$" * 10_000,
    "1,,,,," * 2_000,
    "<think><answer>15</think></answer>",
    "{question}{answer}%s%d{0}",
    "<script>alert(1)</script><answer>15</answer>",
]


def check(text: str, answer: str = "15") -> None:
    result = score_tree(EVERY_LEAF, view(text, answer))
    for score in result.scores:
        assert score.status in {"ok", "gold_bad"}, score
        assert score.value is None or math.isfinite(score.value)
        assert len(score.explanation) < 200
        assert score.explanation.isprintable()


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_completions(text: str) -> None:
    check(text)
    check(f"<think>{text}</think><answer>{text}</answer>")


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_right_answers(text: str) -> None:
    check("<answer>15</answer>", answer=text)


ONE_CLOSED_15 = (
    "<answer>" * 1_000 + "15" + "</answer>" * 1_000,
    "<answer>\u200f15\u200e</answer>",
    "<answer>1\u200b5</answer>",
    "<answer>15</answer>" * 500,
    "<script>alert(1)</script><answer>15</answer>",
)


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_only_what_a_reader_calls_the_one_answer_15_is_correct(text: str) -> None:
    scores = {score.name: score.value for score in score_tree(EVERY_LEAF, view(text)).scores}
    assert scores["correctness"] == float(text in ONE_CLOSED_15)


@given(st.text(), st.text(max_size=40))
def test_any_text(text: str, answer: str) -> None:
    check(text, answer)
    check(f"<answer>{text}</answer>", answer)
