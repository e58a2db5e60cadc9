"""The tiny model and its byte tokenizer."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from training_core.models.tiny import (
    BOS,
    EOS,
    PAD,
    ROLES,
    build_tiny_model,
    build_tiny_tokenizer,
)

TOKENIZER = build_tiny_tokenizer()


@given(st.text())
def test_any_text_comes_back(text: str) -> None:
    ids = TOKENIZER.encode(text, add_special_tokens=False)
    back = TOKENIZER.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)
    assert back == text
    if not any(name in text for name in (PAD, BOS, EOS, *ROLES)):
        assert len(ids) == len(text.encode())


def test_text_of_every_kind_comes_back() -> None:
    for text in (
        "",
        " ",
        "  a  b ",
        "\n\r\t\0\x7f",
        "é e\u0301",
        "数学 🧮",
        "a.b , c !",
        "\ufeffx",
    ):
        ids = TOKENIZER.encode(text, add_special_tokens=False)
        assert TOKENIZER.decode(ids, skip_special_tokens=True) == text


def test_special_tokens_are_single_and_distinct() -> None:
    names = [TOKENIZER.pad_token, TOKENIZER.bos_token, TOKENIZER.eos_token, *ROLES]
    ids = [TOKENIZER.encode(name, add_special_tokens=False) for name in names]
    assert [len(one) for one in ids] == [1] * len(names)
    assert len({one[0] for one in ids}) == len(names)
    assert len(TOKENIZER) == 256 + len(names)


def test_weights_depend_on_the_seed_alone() -> None:
    torch.manual_seed(123)
    before = torch.random.get_rng_state()
    first = build_tiny_model().state_dict()
    assert torch.equal(torch.random.get_rng_state(), before)
    torch.manual_seed(7)
    second, other = build_tiny_model().state_dict(), build_tiny_model(seed=1).state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not all(torch.equal(first[name], other[name]) for name in first)
