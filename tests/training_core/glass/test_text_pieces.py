"""The text of each token: nothing lost, nothing invented."""

from __future__ import annotations

import pytest

from training_core.glass import text_pieces
from training_core.models.tiny import build_tiny_tokenizer

TOKENIZER = build_tiny_tokenizer()


def decode(token_ids: object) -> str:
    return str(
        TOKENIZER.decode(token_ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)
    )


@pytest.mark.parametrize(
    "text", ["7 + 3", "é", "aé👩b", "<answer> 12 </answer>", "مكافأة", "\n\n "]
)
def test_pieces_joined_are_the_text(text: str) -> None:
    ids = TOKENIZER.encode(text, add_special_tokens=False)
    pieces = text_pieces(decode, ids)
    assert len(pieces) == len(ids)
    assert "".join(pieces) == text


def test_a_character_stands_at_the_token_that_completes_it() -> None:
    ids = TOKENIZER.encode("aé", add_special_tokens=False)
    assert text_pieces(decode, ids) == ["a", "", "é"]


def test_special_tokens_are_pieces_of_their_own() -> None:
    ids = [*TOKENIZER.encode("7", add_special_tokens=False), TOKENIZER.eos_token_id]
    assert text_pieces(decode, ids) == ["7", "<|eos|>"]


def test_half_a_character_at_the_end_is_shown_as_such() -> None:
    ids = TOKENIZER.encode("é", add_special_tokens=False)[:1]
    assert text_pieces(decode, ids) == ["\N{REPLACEMENT CHARACTER}"]
