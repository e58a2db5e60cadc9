"""The mix: which domain each prompt comes from, as a pure function of a small state.

Called by `training_core.train` for every step; the state is saved in each checkpoint, so that a
resumed run goes on with the very next prompt.

Stratified sampling in time. With normalised weights w, domain d has windows of length 1/w_d, and
its j-th prompt falls at a random point of its j-th window: t = (j + u(seed, d, j)) / w_d. The next
prompt belongs to the domain with the smallest t. So counts follow the weights within one prompt per
domain at any time, and a batch of n prompts holds exactly n * w_d of each domain wherever those are
whole numbers. Weights may change between calls: each domain keeps its place inside its window.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Sequence
from typing import NamedTuple

from pydantic import Field

from training_core.contract.domains import DomainSpec
from training_core.contract.strict import StrictModel


class DomainCursor(StrictModel):
    """How far one domain has come."""

    name: str
    """Name of the domain."""
    drawn: int = Field(default=0, ge=0)
    """Prompts drawn so far; the next one has this index."""
    due: float = Field(default=0.0, ge=0)
    """Prompts that its weight has earned it so far."""


class MixState(StrictModel):
    """Everything that decides the next prompts."""

    seed: int
    """Seed of the mix."""
    cursors: tuple[DomainCursor, ...] = ()
    """One entry for each domain seen so far."""

    @property
    def drawn(self) -> int:
        """Prompts drawn from all domains together."""
        return sum(cursor.drawn for cursor in self.cursors)


class Pick(NamedTuple):
    """One prompt to be fetched: `prompt(prompt_index)` of the domain's source."""

    domain: str
    prompt_index: int


def next_prompts(
    state: MixState, domains: Sequence[DomainSpec], n: int
) -> tuple[MixState, tuple[Pick, ...]]:
    """Draw n prompts. A domain of weight 0 is never drawn. Raises ValueError without any weight."""
    total = sum(domain.weight for domain in domains)
    if total <= 0:
        raise ValueError("no domain has a weight above 0")
    known = {cursor.name: cursor for cursor in state.cursors}
    begin = {d.name: known.get(d.name) or DomainCursor(name=d.name) for d in domains}
    weights = {d.name: d.weight / total for d in domains if d.weight / total > 0}
    drawn = {name: begin[name].drawn for name in weights}
    queue = [
        (_wait(state.seed, begin[name], drawn[name], weight), name)
        for name, weight in weights.items()
    ]
    heapq.heapify(queue)
    picks: list[Pick] = []
    clock = 0.0
    for _ in range(n):
        clock, name = queue[0]
        picks.append(Pick(name, drawn[name]))
        drawn[name] += 1
        wait = _wait(state.seed, begin[name], drawn[name], weights[name])
        heapq.heapreplace(queue, (wait, name))
    return _advance(state, begin, drawn, weights, clock), tuple(picks)


def _wait(seed: int, cursor: DomainCursor, drawn: int, weight: float) -> float:
    """Time from the start of the call to a domain's next prompt."""
    return max(0.0, (drawn + _jitter(seed, cursor.name, drawn) - cursor.due) / weight)


def _advance(
    state: MixState,
    begin: dict[str, DomainCursor],
    drawn: dict[str, int],
    weights: dict[str, float],
    clock: float,
) -> MixState:
    """The state after the call. Domains that have left the mix keep their place."""
    moved = {
        name: DomainCursor(name=name, drawn=drawn[name], due=begin[name].due + clock * weight)
        for name, weight in weights.items()
    }
    order = {cursor.name: cursor for cursor in state.cursors} | moved
    return MixState(seed=state.seed, cursors=tuple(order.values()))


def _jitter(seed: int, name: str, drawn: int) -> float:
    """A uniform number in [0, 1) for one window of one domain."""
    digest = hashlib.blake2b(f"{seed}|{name}|{drawn}".encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> 11) / 2**53
