"""Which tokens end a completion: the union of everything that a model calls an end.

Called by `models.loading`. Many models end a turn with another token than the tokenizer's
`eos_token` (Phi, Gemma, Qwen); looking at one place only would count every completion as truncated.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from jinja2 import TemplateError

_PROBE = "qz0qz"
"""A reply that no special token has in its name (an x stands in `<|endoftext|>`)."""


def find_eos_ids(model: Any, tokenizer: Any) -> tuple[int, ...]:
    """Sorted ids from the tokenizer, both configs and the chat template's end of turn."""
    found: set[int] = set()
    for holder in (tokenizer, model.config, getattr(model, "generation_config", None)):
        found.update(_as_ids(getattr(holder, "eos_token_id", None)))
    turn_end = find_turn_end_id(tokenizer)
    if turn_end is not None:
        found.add(turn_end)
    return tuple(sorted(found))


def find_turn_end_id(tokenizer: Any) -> int | None:
    """The special token that the chat template puts right after an assistant's reply, if any."""
    messages = [{"role": "user", "content": _PROBE}, {"role": "assistant", "content": _PROBE}]
    try:
        text = tokenizer.apply_chat_template(messages, tokenize=False)
    except (TemplateError, ValueError):
        return None
    tail = str(text).rpartition(_PROBE)[2]
    ids = tokenizer.encode(tail, add_special_tokens=False)
    special = set(tokenizer.all_special_ids) | set(tokenizer.added_tokens_decoder)
    return ids[0] if ids and ids[0] in special else None


def _as_ids(value: int | Iterable[int] | None) -> list[int]:
    """A config's EOS field, which may be an id, a list of ids or nothing."""
    if value is None:
        return []
    return [value] if isinstance(value, int) else [int(item) for item in value]
