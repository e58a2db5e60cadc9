"""A prompt becomes tokens exactly once, the way the chat template says."""

from __future__ import annotations

import pytest

from training_core.contract.domains import Message
from training_core.failures import BadData
from training_core.models.chat import demonstration_ids, prompt_ids
from training_core.models.eos import find_turn_end_id
from training_core.models.tiny import build_tiny_tokenizer

SYSTEM = Message(role="system", content="Be brief.")
USER = Message(role="user", content="2 + 3 = ?")
NO_SYSTEM = (
    "{% for message in messages %}{% if message['role'] == 'system' %}"
    "{{ raise_exception('no system role') }}{% endif %}<|{{ message['role'] }}|>"
    "{{ message['content'] }}{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def test_prompt_is_the_templates_rendering() -> None:
    tokenizer = build_tiny_tokenizer()
    text = "<|bos|><|system|>Be brief.<|user|>2 + 3 = ?<|assistant|>"
    expected = tuple(tokenizer.encode(text, add_special_tokens=False))
    assert prompt_ids(tokenizer, (SYSTEM, USER)) == expected


def test_demonstration_follows_as_if_it_had_been_sampled() -> None:
    """Prompt and reply are, token for token, the template's rendering of the whole talk."""
    tokenizer = build_tiny_tokenizer()
    turn_end = find_turn_end_id(tokenizer)
    assert turn_end == tokenizer.eos_token_id
    reply = demonstration_ids(tokenizer, "<answer>5</answer>", turn_end)
    whole = tokenizer.apply_chat_template(
        [
            {"role": "user", "content": USER.content},
            {"role": "assistant", "content": "<answer>5</answer>"},
        ],
        tokenize=True,
        return_dict=False,
    )
    assert [*prompt_ids(tokenizer, (USER,)), *reply] == list(whole)
    assert reply.count(turn_end) == 1
    assert reply[-1] == turn_end


def test_a_template_without_system_role_gets_the_text_in_front_of_the_question() -> None:
    tokenizer = build_tiny_tokenizer()
    tokenizer.chat_template = NO_SYSTEM
    found = tokenizer.decode(prompt_ids(tokenizer, (SYSTEM, USER)))
    assert found == "<|user|>Be brief.\n\n2 + 3 = ?<|assistant|>"


def test_a_template_that_refuses_the_turns_is_explained() -> None:
    tokenizer = build_tiny_tokenizer()
    tokenizer.chat_template = "{{ raise_exception('turns must alternate') }}"
    with pytest.raises(BadData, match="turns must alternate") as caught:
        prompt_ids(tokenizer, (USER,))
    assert "alternate" in caught.value.advice
    with pytest.raises(BadData, match="refuses the prompt"):
        prompt_ids(tokenizer, (SYSTEM,))
