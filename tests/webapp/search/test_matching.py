"""How names are ranked against what somebody types."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webapp.search.matching import LONGEST_QUERY, MOST_WORDS, rank, words_of


def ordered(query: str, *names: str) -> list[str]:
    """The names that fit, the best first."""
    ranked = [(rank(words_of(query), name), name) for name in names]
    fitting = [(value, name) for value, name in ranked if value is not None]
    return [name for _, name in sorted(fitting, key=lambda pair: -pair[0])]


def test_the_whole_name_comes_before_its_beginning_its_words_and_its_inside() -> None:
    names = ("A readdition", "Teach to add", "Addition", "add")
    assert ordered("add", *names) == ["add", "Addition", "Teach to add", "A readdition"]


def test_every_word_must_fit() -> None:
    assert ordered("teach copy", "Teach SmolLM2 to add", "Teach it to copy") == ["Teach it to copy"]


def test_case_accents_and_width_do_not_count() -> None:
    assert ordered("emile", "Émile") == ["Émile"]
    assert ordered("ABC", "ａｂｃ") == ["ａｂｃ"]


def test_initials_and_left_out_letters_find_a_name() -> None:
    assert ordered("tsa", "Teach SmolLM2 to add", "Tiny model") == []
    assert ordered("tsta", "Teach SmolLM2 to add", "Tiny model") == ["Teach SmolLM2 to add"]
    assert ordered("wrkrs", "Workers", "Runs") == ["Workers"]
    assert ordered("xyz", "Workers") == []


def test_words_beside_the_name_count_less_than_the_name() -> None:
    assert rank(("failed",), "A run", "failed ada") is not None
    by_name, by_state = rank(("failed",), "failed twice"), rank(("failed",), "A run", "failed")
    assert by_name is not None
    assert by_state is not None
    assert by_name > by_state


def test_without_words_everything_fits_equally() -> None:
    assert rank((), "anything") == 0.0


@pytest.mark.parametrize("query", ["(", "[a-", "\\", "*", "a\0b", "😀", "%", "_", "'"])
def test_signs_are_only_signs(query: str) -> None:
    name = "a name of (some) [a- kind"
    assert (rank(words_of(query), name) is not None) is (query in name)


@given(st.text(max_size=400), st.text(max_size=80))
def test_any_text_is_ranked_between_0_and_1(query: str, name: str) -> None:
    words = words_of(query)
    value = rank(words, name)
    assert len(words) <= MOST_WORDS
    assert value is None or 0.0 <= value <= 1.0


def test_a_long_query_costs_what_a_short_one_does() -> None:
    assert len(words_of("a" * 10_000)[0]) == LONGEST_QUERY
