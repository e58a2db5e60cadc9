"""Filling the templates of a domain. Only `{question}` and `{answer}` are names; every other brace
is plain text, and what is filled in is not read as a template again.
"""

from __future__ import annotations

import re

from training_core.contract.domains import Message

_SLOT = re.compile(r"\{(question|answer)\}")


def fill(template: str, **values: str) -> str:
    """The template with the given names filled in; names that are not given stay as they are."""
    return _SLOT.sub(lambda match: values.get(match[1], match[0]), template)


def chat_prompt(system_prompt: str, user: str) -> tuple[Message, ...]:
    """A prompt of an optional system turn and one user turn."""
    turns = (Message(role="user", content=user),)
    return (Message(role="system", content=system_prompt), *turns) if system_prompt else turns
