"""Every token that a model calls an end ends a completion."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tokenizers import AddedToken

from training_core.models.eos import find_eos_ids, find_turn_end_id
from training_core.models.tiny import build_tiny_tokenizer

TURNS = (
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}<|end|>\n"
    "{% endfor %}"
)


def tokenizer_with(template: str) -> Any:
    """The tiny tokenizer with two more ends, one of which has an x in its name."""
    tokenizer = build_tiny_tokenizer()
    ends = [AddedToken(name, special=True) for name in ("<|end|>", "<|endoftext|>")]
    tokenizer.add_tokens(ends, special_tokens=True)
    tokenizer.chat_template = template
    return tokenizer


def model_with(config: object, generation: object) -> Any:
    return SimpleNamespace(
        config=SimpleNamespace(eos_token_id=config),
        generation_config=SimpleNamespace(eos_token_id=generation),
    )


def test_union_of_all_places() -> None:
    tokenizer = tokenizer_with(TURNS)
    end = tokenizer.convert_tokens_to_ids("<|end|>")
    model = model_with(config=50, generation=[60, 61])
    assert find_eos_ids(model, tokenizer) == tuple(
        sorted({tokenizer.eos_token_id, 50, 60, 61, end})
    )


def test_places_that_say_nothing() -> None:
    tokenizer = tokenizer_with("{{ messages[0]['content'] }}")
    tokenizer.eos_token = None
    assert find_eos_ids(model_with(None, None), tokenizer) == ()


def test_turn_end_of_a_plain_template() -> None:
    tokenizer = tokenizer_with(TURNS)
    assert find_turn_end_id(tokenizer) == tokenizer.convert_tokens_to_ids("<|end|>")


def test_turn_end_is_the_first_end_after_the_reply() -> None:
    """Phi's template closes the whole talk with `<|endoftext|>` after the turn's own end."""
    tokenizer = tokenizer_with(TURNS + "{% if not add_generation_prompt %}<|endoftext|>{% endif %}")
    assert find_turn_end_id(tokenizer) == tokenizer.convert_tokens_to_ids("<|end|>")


def test_a_template_without_an_end_has_none() -> None:
    assert find_turn_end_id(tokenizer_with("{{ messages[-1]['content'] }} and so on")) is None
    assert find_turn_end_id(tokenizer_with("{{ raise_exception('no assistant turns') }}")) is None
