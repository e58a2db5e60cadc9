"""Numbers that JSON has no sign for travel as words, the same words as in the curves."""

from __future__ import annotations

import math
from typing import Any, Literal

from webapp.metrics.wire import kind_of

Word = Literal["nan", "inf", "-inf"]
Number = float | Word
"""A number, or the word of one that is not finite."""

_STORED = {"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}
"""How rows spell what the trainer logged, and how we do."""


def plain(value: Any) -> Any:
    """A JSON value with words in place of numbers that are not finite."""
    if isinstance(value, float) and not math.isfinite(value):
        return kind_of(value)
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def plain_stored(value: Any) -> Any:
    """The same for a value whose words were chosen when it was stored."""
    if isinstance(value, str):
        return _STORED.get(value, value)
    return plain(value)
