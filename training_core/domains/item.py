"""What a domain hands out, and what every kind of domain can do.

Made by the sources in this package, used by the trainer, the evaluator and the curriculum.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from training_core.contract.domains import Message


@dataclass(frozen=True, slots=True)
class PromptItem:
    """One prompt with its right answer."""

    prompt_id: str
    """Stable id inside the domain: the same question and answer always have the same id."""
    domain: str
    """Name of the domain."""
    messages: tuple[Message, ...]
    """The prompt as chat turns."""
    question: str
    """The question alone, without system turn and template."""
    answer: str
    """The right answer, as text."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Where the item came from, so that it can be made again."""


class DomainSource(Protocol):
    """An opened domain. Both sides are pure: asked again, they give the same items."""

    def prompt(self, index: int) -> PromptItem:
        """The index-th training prompt, from 0 without end: a function of (seed, index) alone."""

    def held_out(self) -> list[PromptItem]:
        """Prompts for evaluation: the same for every seed, and never given out by `prompt`."""

    def demonstration(self, item: PromptItem) -> str:
        """The assistant reply that sft stages imitate."""
