"""How the tokens of a completion are drawn: what the step did to the probability of each.

Pure functions over a `GlassCompletion`, called by `page` and by the view of one completion's table.
A rise is drawn with a line above the token and a fall with a line below it, so that the sign does
not hang on colour; four strengths stand for the size of the change, relative to the largest one.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_lazy

from training_core.contract.glass import GlassCompletion
from webapp.ui.wording import format_number

STRENGTHS = 4
INVISIBLE_SHARE = 0.02
"""Of the largest change; a smaller one is drawn as none."""
HALF_CHARACTER = "▯"
"""Stands for a token that ends inside a character."""
SPECIAL = re.compile(r"<\|[^<>|\s]{1,60}\|>|</?s>")
CLIPS: dict[str, str | Promise] = {
    "": gettext_lazy("a second update would not clip it"),
    "low": gettext_lazy("a second update would clip it below 1 − ε"),
    "high": gettext_lazy("a second update would clip it above 1 + ε"),
}


class TokenMark(NamedTuple):
    """One token of a completion."""

    text: str
    """What is drawn."""
    style: str
    """CSS classes."""
    title: str
    """Everything about it, in a line."""


class TokenRow(NamedTuple):
    """One token in the table."""

    place: int
    text: str
    before: str
    after: str
    change: str
    ratio: str
    clip: str


def mark_tokens(completion: GlassCompletion, largest: float) -> list[TokenMark]:
    """All tokens; `largest` is the largest change of log-probability in the group, in nats."""
    return [
        TokenMark(row.text.replace("\n", "↵\n"), _style(completion, place, largest), _title(row))
        for place, row in enumerate(token_rows(completion))
    ]


def token_rows(completion: GlassCompletion) -> list[TokenRow]:
    """All tokens with their numbers."""
    return [
        TokenRow(
            place + 1,
            piece or HALF_CHARACTER,
            probability(before),
            probability(after),
            signed(after - before),
            ratio(after - before),
            clip,
        )
        for place, (piece, before, after, clip) in enumerate(
            zip(
                completion.pieces,
                completion.before,
                completion.after,
                completion.next_clip,
                strict=True,
            )
        )
    ]


def changes(completion: GlassCompletion) -> list[float]:
    """Change of each token's log-probability, in nats."""
    return [
        after - before for before, after in zip(completion.before, completion.after, strict=True)
    ]


def largest_change(completions: tuple[GlassCompletion, ...]) -> float:
    """The largest finite change of the group, in nats; 0 when nothing moved."""
    sizes = [abs(change) for one in completions for change in changes(one)]
    return max((size for size in sizes if math.isfinite(size)), default=0.0)


def probability(logprob: float) -> str:
    """A probability from its logarithm: four digits, small ones with an exponent."""
    return format_number(math.exp(logprob)) if math.isfinite(logprob) else format_number(logprob)


def signed(value: float) -> str:
    """A change with its sign; exactly none is 0."""
    text = format_number(value)
    return f"+{text}" if value > 0 else text


def ratio(change: float) -> str:
    """exp of a change of log-probability, with as many digits as the change needs."""
    if not math.isfinite(change):
        return format_number(change)
    if change == 0:
        return "1"
    factor = math.exp(min(change, 700.0))
    if 0.1 <= factor < 1000:
        digits = 4 if abs(change) >= 1e-3 else min(9, 1 - math.floor(math.log10(abs(change))))
        return f"{factor:.{digits}f}"
    return format_number(factor)


def _style(completion: GlassCompletion, place: int, largest: float) -> str:
    """Direction and strength, a special token's box, a later clip's mark."""
    change = completion.after[place] - completion.before[place]
    names = ["token"]
    if math.isfinite(change) and largest > 0 and abs(change) > INVISIBLE_SHARE * largest:
        strength = min(STRENGTHS, math.ceil(STRENGTHS * abs(change) / largest))
        names.append(f"{'up' if change > 0 else 'down'}-{strength}")
    if SPECIAL.fullmatch(completion.pieces[place]):
        names.append("special")
    if completion.next_clip[place]:
        names.append("clips")
    return " ".join(names)


def _title(row: TokenRow) -> str:
    """p before → p after, ratio, change, clip."""
    numbers = gettext("p %(before)s → %(after)s, ratio %(ratio)s, log p %(change)s nats; %(clip)s")
    return numbers % {**row._asdict(), "clip": CLIPS[row.clip]}
