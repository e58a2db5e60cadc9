"""How well a name fits what somebody has typed. Pure functions.

Called by `webapp.search.find` for every kind of thing, so that runs and pages are ranked alike.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

MOST_WORDS = 8
LONGEST_QUERY = 200
SHORTEST_ABBREVIATION = 3
WHOLE, START, WORD_START, INSIDE, BESIDE, ABBREVIATED = 1.0, 0.9, 0.8, 0.6, 0.5, 0.3


def words_of(query: str) -> tuple[str, ...]:
    """The words of a query as they are compared: folded, a few, never with NUL."""
    return tuple(fold(query.replace("\0", "")[:LONGEST_QUERY]).split()[:MOST_WORDS])


def fold(text: str) -> str:
    """Case, accents and width do not count: `Émile` is found as `emile`."""
    apart = unicodedata.normalize("NFKD", text).casefold()
    return "".join(sign for sign in apart if not unicodedata.combining(sign))


def rank(words: Sequence[str], name: str, beside: str = "") -> float | None:
    """From 0 to 1 how well a name fits all the words; None when one of them fits nothing.

    `beside` is what a thing is found by although it is not its name: a state, an owner.
    """
    folded, more = fold(name), fold(beside)
    found = [_rank_word(word, folded, more) for word in words]
    if not words or any(value is None for value in found):
        return None if words else 0.0
    whole = WHOLE if " ".join(words) == folded.strip() else 0.0
    return max(whole, sum(value or 0.0 for value in found) / len(found))


def _rank_word(word: str, name: str, beside: str) -> float | None:
    """One word: the beginning of the name counts most, its letters in their order least."""
    at = name.find(word)
    if at == 0:
        return START
    if re.search(rf"\b{re.escape(word)}", name):
        return WORD_START
    if at > 0:
        return INSIDE
    if re.search(rf"(^|\W){re.escape(word)}", beside):
        return BESIDE
    return ABBREVIATED if _abbreviates(word, name) else None


def _abbreviates(word: str, name: str) -> bool:
    """Whether the letters stand in the name in this order, each at or near a beginning."""
    if len(word) < SHORTEST_ABBREVIATION:
        return False
    initials = "".join(re.findall(r"\b(\w)", name))
    if word in initials:
        return True
    letters = iter(re.sub(r"\s", "", name))
    return len(word) * 3 >= len(name) and all(letter in letters for letter in word)
