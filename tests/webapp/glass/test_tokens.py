"""How tokens are drawn: direction, strength, words."""

from __future__ import annotations

import pytest

from tests.webapp.glass.steps import make_result
from training_core.contract.glass import GlassCompletion
from webapp.glass.tokens import largest_change, mark_tokens, ratio, token_rows


def completion(*changes: float, pieces: tuple[str, ...] = ()) -> GlassCompletion:
    """A completion whose tokens changed by so many nats."""
    one = make_result().completions[0]
    size = len(changes)
    return one.model_copy(
        update={
            "token_ids": tuple(range(size)),
            "pieces": pieces or ("a",) * size,
            "before": (-1.0,) * size,
            "after": tuple(-1.0 + change for change in changes),
            "next_clip": ("",) * size,
        }
    )


def test_direction_and_strength_follow_the_change() -> None:
    marks = mark_tokens(completion(0.4, 0.21, 0.05, 0.004, 0.0, -0.05, -0.4), 0.4)
    assert [mark.style.removeprefix("token").strip() for mark in marks] == [
        "up-4",
        "up-3",
        "up-1",
        "",
        "",
        "down-1",
        "down-4",
    ]


def test_nothing_moved_draws_nothing() -> None:
    assert largest_change((completion(0.0, 0.0),)) == 0.0
    assert {mark.style for mark in mark_tokens(completion(0.0, 0.0), 0.0)} == {"token"}


def test_a_change_that_is_no_number_is_no_measure_for_the_others() -> None:
    broken = completion(float("nan"), float("-inf"), 0.2)
    assert largest_change((broken,)) == pytest.approx(0.2)
    marks = mark_tokens(broken, 0.2)
    assert [mark.style for mark in marks] == ["token", "token", "token up-4"]
    assert "NaN" in marks[0].title


def test_half_characters_newlines_and_special_tokens_are_seen() -> None:
    marks = mark_tokens(completion(0.1, 0.1, 0.1, pieces=("", "\n", "<|im_end|>")), 0.1)
    assert [mark.text for mark in marks] == ["▯", "↵\n", "<|im_end|>"]
    assert "special" in marks[2].style


def test_the_title_says_everything() -> None:
    (mark,) = mark_tokens(completion(0.1), 0.1)
    assert mark.title == (
        "p 0.3679 → 0.4066, ratio 1.1052, log p +0.1 nats; a second update would not clip it"
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (0.0, "1"),
        (0.1, "1.1052"),
        (-0.1, "0.9048"),
        (1e-5, "1.000010"),
        (-2e-6, "0.9999980"),
        (5.0, "148.4132"),
        (9.0, "8,103"),
        (1000.0, "1.01e304"),
        (float("nan"), "NaN"),
    ],
)
def test_ratios_have_the_digits_that_they_need(change: float, words: str) -> None:
    assert ratio(change) == words


def test_rows_are_counted_from_1() -> None:
    rows = token_rows(completion(0.1, -0.1))
    assert [(row.place, row.change) for row in rows] == [(1, "+0.1"), (2, "−0.1")]
