"""What a reward sees and what it says. Every leaf is a function of these two types.

Built by the trainer and the evaluator from a rollout, read by the leaves in this package.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from training_core.contract.rollouts import FinishReason, ScoreStatus

SHOWN_CHARS = 40


@dataclass(frozen=True, slots=True)
class CompletionView:
    """One completion, as rewards see it."""

    text: str
    """The completion without special tokens."""
    answer: str
    """The right answer, as text."""
    tokens: int
    """Completion length in tokens, the end token included."""
    finish_reason: FinishReason = "eos"
    """How the completion ended; `length` means cut at the limit."""
    raw: str = ""
    """The completion with special tokens."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Where the prompt came from: generator, seed, index, record."""


class LeafScore(NamedTuple):
    """What one leaf says about one completion."""

    status: ScoreStatus
    """`ok`, or why there is no score."""
    value: float | None
    """The score; None unless the status is `ok`."""
    explanation: str
    """Why, in one plain sentence."""


def scored(value: float, explanation: str) -> LeafScore:
    """A score with its reason."""
    return LeafScore("ok", value, explanation)


def unscored(status: ScoreStatus, explanation: str) -> LeafScore:
    """No score, with the reason; it must never be read as 0."""
    return LeafScore(status, None, explanation)


def shown(text: str) -> str:
    """A piece of text short and plain enough for an explanation."""
    plain = " ".join(text[: 4 * SHOWN_CHARS].split())
    plain = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in plain)
    return plain if len(plain) <= SHOWN_CHARS else f"{plain[: SHOWN_CHARS - 3]}..."
