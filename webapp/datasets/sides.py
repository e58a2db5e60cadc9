"""Which records are held out: decided by a hash of the prompt, so that one question is never on
both sides, in this version or in any other. Called by the import while it reads a file.

What would surprise: in a file of a few prompts the hash alone may leave a side empty; then the
border moves just so far that each side has two prompts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from training_core.contract.domains import Message

FEWEST_ON_A_SIDE = 2
FEWEST_PROMPTS = 2 * FEWEST_ON_A_SIDE
WATCHED = 10_000  # beyond so many prompts no side is ever empty
Side = Literal["train", "held_out"]


@dataclass
class Sides:
    """The border between the two sides of one file."""

    percent: int
    """Share of prompts to hold out."""
    ranks: dict[bytes, float] = field(default_factory=dict)
    """Place of each prompt, for the first prompts of the file."""
    held_out: frozenset[bytes] | None = None
    """The held-out prompts, where the border had to move."""

    def see(self, messages: Sequence[Message]) -> None:
        """Take a prompt of the first reading into account."""
        if len(self.ranks) < WATCHED:
            key, rank = place(messages)
            self.ranks[key] = rank

    @property
    def enough(self) -> bool:
        """Whether both sides can have something."""
        return len(self.ranks) >= FEWEST_PROMPTS

    def settle(self) -> None:
        """Move the border where a side would be empty."""
        if not self.enough or len(self.ranks) == WATCHED:
            return
        by_chance = sum(rank < self.percent / 100 for rank in self.ranks.values())
        wanted = min(max(by_chance, FEWEST_ON_A_SIDE), len(self.ranks) - FEWEST_ON_A_SIDE)
        if wanted != by_chance:
            order = sorted(self.ranks, key=lambda key: (self.ranks[key], key))
            self.held_out = frozenset(order[:wanted])

    def side(self, messages: Sequence[Message]) -> Side:
        """The side of a prompt, after `settle`."""
        key, rank = place(messages)
        held = rank < self.percent / 100 if self.held_out is None else key in self.held_out
        return "held_out" if held else "train"


def place(messages: Sequence[Message]) -> tuple[bytes, float]:
    """(identity, place in [0, 1)) of a prompt."""
    turns = json.dumps([(turn.role, turn.content) for turn in messages])
    digest = hashlib.sha256(turns.encode()).digest()
    return digest, int.from_bytes(digest[:6], "big") / 2**48
