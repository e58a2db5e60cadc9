from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.training_core.rewards.views import view
from training_core.contract.rewards import FormatReward
from training_core.rewards.completion import LeafScore
from training_core.rewards.format import score_format

ONE = FormatReward()
TWO = FormatReward(tags=("think", "answer"))
OPEN = FormatReward(tags=("think", "answer"), allow_text_outside=True)


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (ONE, "<answer>15</answer>"),
        (ONE, "\n <answer>\n15\n</answer> \n"),
        (ONE, "<answer>a < b > c <b>bold</b></answer>"),
        (TWO, "<think>a</think><answer>b</answer>"),
        (TWO, "<think>\na\n</think>\n\n<answer>b</answer>\n"),
        (TWO, "<think>a <thinking> </answers> </think><answer>b</answer>"),
        (OPEN, "so <think>a</think> then <answer>b</answer> done"),
        (OPEN, "<think>a</think><answer>b</answer>"),
    ],
)
def test_what_keeps_to_the_grammar(spec: FormatReward, text: str) -> None:
    tags = "<think> <answer>" if len(spec.tags) == 2 else "<answer>"
    assert score_format(spec, view(text)) == LeafScore("ok", 1.0, f"{tags} as asked for")


@pytest.mark.parametrize(
    ("spec", "text", "fault"),
    [
        (ONE, "", "no <answer> tag"),
        (ONE, "15", "no <answer> tag"),
        (ONE, "<Answer>15</Answer>", "no <answer> tag: it is written in another case"),
        (ONE, "<answer >15</answer >", "no <answer> tag"),
        (ONE, "<answer>15", "<answer> is never closed"),
        (ONE, "<answer>15<answer>", "<answer> stands inside <answer>"),
        (ONE, "15</answer>", "</answer> closes nothing"),
        (ONE, "<answer></answer>", "<answer> is empty"),
        (ONE, "<answer> \n\t </answer>", "<answer> is empty"),
        (ONE, "<answer>\u200b\u2060</answer>", "<answer> is empty"),
        (ONE, "so <answer>15</answer>", "text outside the tags: 'so'"),
        (ONE, "<answer>15</answer>.", "text outside the tags: '.'"),
        (ONE, "<answer>15</answer>\n\nand more", "text outside the tags: 'and more'"),
        (ONE, "<answer>15</answer>\u200b", "text outside the tags: '\N{REPLACEMENT CHARACTER}'"),
        (ONE, "<answer>1</answer><answer>1</answer>", "<answer> stands more than once"),
        (ONE, "<answer><answer>1</answer></answer>", "<answer> stands inside <answer>"),
        (ONE, "<answer>1</answer></answer>", "</answer> closes nothing"),
        (TWO, "<answer>b</answer>", "<answer> stands out of order"),
        (TWO, "<answer>b</answer><think>a</think>", "<answer> stands out of order"),
        (TWO, "<think>a</think>", "no <answer> tag"),
        (
            TWO,
            "<think>a</think><ANSWER>b</ANSWER>",
            "no <answer> tag: it is written in another case",
        ),
        (TWO, "<think></think><answer>b</answer>", "<think> is empty"),
        (TWO, "<think>a</think></think><answer>b</answer>", "</think> closes nothing"),
        (TWO, "<think>a<answer>b</answer></think>", "<answer> stands inside <think>"),
        (TWO, "<think>a</answer>", "</answer> stands inside <think>"),
        (TWO, "<think>a</think>x<answer>b</answer>", "text outside the tags: 'x'"),
        (
            TWO,
            "<think>a</think><answer>b</answer><think>c</think>",
            "<think> stands more than once",
        ),
        (OPEN, "a <answer>b</answer>", "<answer> stands out of order"),
        (OPEN, "<think>a</think> and", "no <answer> tag"),
        (OPEN, "<think> </think> <answer>b</answer>", "<think> is empty"),
    ],
)
def test_the_first_fault_is_named(spec: FormatReward, text: str, fault: str) -> None:
    assert score_format(spec, view(text)) == LeafScore("ok", 0.0, fault)


CONTENT = st.text(alphabet="ab <>/", max_size=12)


@given(CONTENT, CONTENT)
def test_content_decides_only_by_being_there(thought: str, answer: str) -> None:
    score = score_format(TWO, view(f"<think>{thought}</think><answer>{answer}</answer>"))
    assert score.value == float(bool(thought.strip()) and bool(answer.strip()))


PIECES = st.lists(
    st.sampled_from(["<think>", "</think>", "<answer>", "</answer>", "x", " "]), max_size=8
)


@given(PIECES)
def test_only_one_order_of_tags_scores(pieces: list[str]) -> None:
    tags = [piece for piece in pieces if piece.startswith("<")]
    in_order = tags == ["<think>", "</think>", "<answer>", "</answer>"]
    score = score_format(OPEN, view("".join(pieces)))
    full = in_order and all(
        "x" in pieces[pieces.index(f"<{name}>") : pieces.index(f"</{name}>")]
        for name in ("think", "answer")
    )
    assert score.value == float(full)
