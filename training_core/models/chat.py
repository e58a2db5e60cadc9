"""Chat turns as token ids: the only place where a prompt becomes tokens.

Called by `rollouts.collect`, `sft` and `evaluate`. A prompt is rendered once and its ids are kept:
completions are appended as ids (token in, token out), never rendered and tokenised again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jinja2 import TemplateError

from training_core.contract.domains import Message
from training_core.failures import BadData


def prompt_ids(tokenizer: Any, messages: Sequence[Message]) -> tuple[int, ...]:
    """Ids of the turns and of the opening of the assistant's turn, as the chat template says.

    Templates without a system role (Gemma's, for one) get the system text in front of the first
    user turn.
    """
    turns = [{"role": turn.role, "content": turn.content} for turn in messages]
    try:
        return _render(tokenizer, turns)
    except TemplateError as error:
        if turns[0]["role"] != "system" or len(turns) < 2:
            raise BadData(
                f"The model's chat template refuses the prompt: {error}",
                "Use turns that alternate between user and assistant and end with the user.",
            ) from error
    first = {"role": turns[1]["role"], "content": f"{turns[0]['content']}\n\n{turns[1]['content']}"}
    return prompt_ids(tokenizer, [Message.model_validate(turn) for turn in (first, *turns[2:])])


def demonstration_ids(tokenizer: Any, reply: str, turn_end_id: int) -> tuple[int, ...]:
    """Ids of an assistant's reply with its end of turn: what the policy would have sampled."""
    return (*tokenizer.encode(reply, add_special_tokens=False), turn_end_id)


def _render(tokenizer: Any, turns: list[dict[str, str]]) -> tuple[int, ...]:
    ids = tokenizer.apply_chat_template(
        turns, add_generation_prompt=True, tokenize=True, return_dict=False
    )
    return tuple(int(token) for token in ids)
