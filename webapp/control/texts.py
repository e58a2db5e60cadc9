"""Text that PostgreSQL can hold. Called before anything from a trainer becomes a row.

PostgreSQL's text and jsonb refuse NUL and lone surrogates; an exception's message or a byte-level
model's words may hold both. JSON numbers have no NaN, so non-finite floats become words.
"""

from __future__ import annotations

import math
from typing import Any

_UNSTORABLE = {0: "␀", **dict.fromkeys(range(0xD800, 0xE000), "\ufffd")}


def clean_text(text: str, limit: int = 20_000) -> str:
    """Visible signs for what cannot be stored; the end is cut beyond the limit."""
    text = text.translate(_UNSTORABLE)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def clean_json(value: Any) -> Any:
    """A JSON value that jsonb can hold."""
    match value:
        case str():
            return clean_text(value)
        case float() if not math.isfinite(value):
            return number_word(value)
        case dict():
            return {clean_text(str(key)): clean_json(item) for key, item in value.items()}
        case list() | tuple():
            return [clean_json(item) for item in value]
        case _:
            return value


def number_word(value: float) -> str:
    """How a non-finite number is spelled in JSON."""
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"
