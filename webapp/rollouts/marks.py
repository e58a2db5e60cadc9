"""How a completion is drawn: special tokens made visible, scores as bars.

Pure functions behind the template tags of this app.
"""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple

from django.utils.functional import Promise
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext, gettext_lazy

SPECIAL = re.compile(
    r"<\|[^<>|\s]{1,60}\|>|</?s>|<(?:pad|unk|bos|eos|mask)>|\[(?:PAD|UNK|CLS|SEP)\]"
)
STATUS_WORDS: dict[str, str | Promise] = {
    "abstain": gettext_lazy("abstained"),
    "error": gettext_lazy("failed"),
    "timeout": gettext_lazy("timed out"),
    "gold_bad": gettext_lazy("answer unusable"),
    "skipped": gettext_lazy("skipped"),
}
WIDTH = 100.0


class ScoreBar(NamedTuple):
    """One reward's score, ready to draw on an axis from -1 or 0 to 1."""

    name: str
    weight: float
    text: str
    """The score, or why there is none."""
    explanation: str
    is_scored: bool
    x: float
    """Left end of the bar, of 100."""
    width: float
    zero: float
    """Where 0 is."""
    tone: str
    """ok, bad or calm."""


def mark_special(text: str) -> SafeString:
    """The text as safe HTML with special tokens in boxes; a text of nothing says so."""
    if not text:
        return format_html('<span class="special">{}</span>', gettext("(empty)"))
    found: list[str] = []
    start = 0
    for match in SPECIAL.finditer(text):
        found.append(escape(text[start : match.start()]))
        found.append(f'<span class="special">{escape(match[0])}</span>')
        start = match.end()
    found.append(escape(text[start:]))
    return mark_safe("".join(found))


def score_bars(scores: list[dict[str, Any]]) -> list[ScoreBar]:
    """One bar for each reward of a completion."""
    return [_bar(score) for score in scores]


def _bar(score: dict[str, Any]) -> ScoreBar:
    """One reward's bar: the axis starts at -1 only for scores below 0."""
    status, value = score.get("status"), _number(score.get("value"))
    name, weight = str(score.get("name", "")), float(_number(score.get("weight")) or 0)
    explanation = str(score.get("explanation") or "")
    if status != "ok" or value is None:
        words = str(STATUS_WORDS.get(str(status), status))
        return ScoreBar(name, weight, words, explanation, False, 0, 0, 0, "calm")
    if not math.isfinite(value):
        return ScoreBar(name, weight, str(value), explanation, True, 0, 0, 0, "bad")
    shown = min(max(value, -1.0), 1.0)
    zero = WIDTH / 2 if value < 0 else 0.0
    scale = WIDTH / 2 if value < 0 else WIDTH
    width = abs(shown) * scale
    left = zero - width if value < 0 else zero
    tone = "bad" if value < 0 else "ok"
    return ScoreBar(
        name, weight, f"{value:.3g}", explanation, True, round(left, 2), round(width, 2), zero, tone
    )


def _number(value: Any) -> float | None:
    """A float, also where JSON carried NaN or infinity as a word."""
    return None if value is None else float(value)
