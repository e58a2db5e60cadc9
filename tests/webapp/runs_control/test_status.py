from __future__ import annotations

import re

import pytest

from webapp.runs import status
from webapp.runs.status import LIVE, MOVES, TERMINAL, Actor, RunState, find_move, sources_of


def reachable_from(start: RunState) -> set[RunState]:
    seen, pending = {start}, [start]
    while pending:
        state = pending.pop()
        for move in MOVES:
            if move.source is state and move.target not in seen:
                seen.add(move.target)
                pending.append(move.target)
    return seen


def test_every_state_can_be_reached() -> None:
    assert reachable_from(RunState.DRAFT) == set(RunState)


@pytest.mark.parametrize("state", [s for s in RunState if s is not RunState.SUCCEEDED])
def test_no_state_is_a_trap(state: RunState) -> None:
    assert RunState.SUCCEEDED in reachable_from(state)


def test_each_edge_stands_once() -> None:
    edges = [(move.source, move.target) for move in MOVES]
    assert len(edges) == len(set(edges))


@pytest.mark.parametrize("state", sorted(LIVE))
def test_a_dead_worker_cannot_hold_a_live_state(state: RunState) -> None:
    assert any(m.source is state and Actor.REAPER in m.actors for m in MOVES)


@pytest.mark.parametrize("state", sorted(TERMINAL))
def test_only_a_person_leaves_a_terminal_state(state: RunState) -> None:
    moves = [move for move in MOVES if move.source is state]
    assert all(move.actors == {Actor.PERSON} and move.target is RunState.QUEUED for move in moves)


def test_a_run_starts_by_a_claim_alone() -> None:
    assert sources_of(RunState.STARTING, Actor.WORKER) == {RunState.QUEUED}
    assert sources_of(RunState.STARTING, Actor.PERSON) == frozenset()
    assert sources_of(RunState.STARTING, Actor.REAPER) == frozenset()


def test_what_a_person_may_do_is_in_the_table() -> None:
    def has(source: RunState, targets: set[RunState]) -> bool:
        moves = [find_move(source, target) for target in targets]
        return any(move and Actor.PERSON in move.actors for move in moves)

    for state in status.STOPPABLE:
        assert has(state, {RunState.STOPPING, RunState.STOPPED}), state
    for state in status.PAUSABLE:
        assert has(state, {RunState.PAUSING, RunState.PAUSED}), state
    for state in status.RESUMABLE:
        assert has(state, {RunState.QUEUED}), state


def test_the_diagram_explains_each_letter_of_the_table() -> None:
    explained = set(re.findall(r"^([a-z])  \w", status.__doc__ or "", re.MULTILINE))
    assert explained == {move.letter for move in MOVES}
