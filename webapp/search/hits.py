"""What a search answers with: hits in groups. Drawn by `templates/search/results.html`."""

from __future__ import annotations

from typing import NamedTuple


class Hit(NamedTuple):
    """One thing that can be opened or done."""

    title: str
    url: str
    """Where it leads; empty for a deed of the page itself."""
    icon: str
    detail: str = ""
    """What tells it from others of the same name."""
    state: str = ""
    """State of a run or an import, drawn as a pill."""
    keys: str = ""
    """Keys that lead there without a search."""
    beside: str = ""
    """Words it is found by besides its title."""
    deed: str = ""
    """What the page does instead of opening an address: `theme` or `keys`."""
    asks: bool = False
    """Whether its address is a question for a dialog."""
    rank: float = 0.0
    """How well it fits, from 0 to 1."""


class HitGroup(NamedTuple):
    """Hits of one kind."""

    slug: str
    label: str
    hits: list[Hit]

    @property
    def rank(self) -> float:
        """Of its best hit."""
        return max((hit.rank for hit in self.hits), default=0.0)
