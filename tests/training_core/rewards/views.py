"""A completion as the tests of rewards need it."""

from __future__ import annotations

from training_core.rewards.completion import CompletionView


def view(
    text: str, answer: str = "15", tokens: int = 8, finish_reason: str = "eos"
) -> CompletionView:
    return CompletionView(text=text, answer=answer, tokens=tokens, finish_reason=finish_reason)  # type: ignore[arg-type]
