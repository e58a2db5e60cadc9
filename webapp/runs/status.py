"""The states of a run, the moves between them and who may make each: one diagram, one table.

Pure, no Django. Read by `webapp.runs.moves`, the one function that changes a state, and by pages
that show what a person may do. A move that is not in `MOVES` does not exist.

      (draft)
         | a
         v       b                 e                 j
      (queued) -----> (starting) -----> (running) -------> (succeeded)
       ^ ^ ^ |          |  |  |          |  |  |
       | | | |          |  |  +-- f, g --+  |  +-- k ----> (failed) --- q ---> (queued)
       | | | |          |  |       |        |
       | | | |          |  |       |     i
       | | | |          |  |       +----> (pausing)  ---> (paused) ---- q ---> (queued)
       | | | |          |  |       +----> (stopping) ---> (stopped) --- q ---> (queued)
       | | | |          |  |
       | | | +-- c -----|--|----------------------------> (paused), (stopped)
       | | |            |  |
       | | +---- l -----+  +--- m -----> (lost) --- n ---> (running)
       | +------ o ----------------------- |  |
       |                                   |  +-- j, k --> (succeeded), (failed)
       +-------- q (see right)             +----- c -----> (paused), (stopped)

a  launch     a person          the spec was checked; a row is all that a launch is
b  claim      a worker          guarded: of two deliveries one wins; opens an attempt
c  stop/pause a person          no trainer is at work, so it takes effect at once
e  start      a worker          the trainer said `attempt_started`
f  pause      a person          a wish; the supervisor carries it to the trainer
g  stop       a person          a wish; also from pausing
i  settle     worker or reaper  the wish came true, with or without the trainer's help
j  succeed    worker or reaper  the program is done, also where a wish came too late
k  fail       worker or reaper  not worth another attempt; cause and advice say why
l  hand back  a worker          it shuts down, or the trainer crashed and is worth a retry
m  lose       the reaper        nobody renewed the lease
n  revive     a worker          a late heartbeat with the right token
o  requeue    the reaper        goes on from the newest checkpoint
q  resume     a person          from paused, stopped or failed

j and k start from each state in which a worker has the run. Terminal states are left by q alone,
`succeeded` never: restart from one of its checkpoints instead.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class RunState(StrEnum):
    """Where a run is. The value is what the database holds."""

    DRAFT = "draft"
    """Saved, not launched."""
    QUEUED = "queued"
    """Waits for a worker; goes on from the newest checkpoint where there is one."""
    STARTING = "starting"
    """A worker has claimed it; the trainer is loading."""
    RUNNING = "running"
    """The trainer trains."""
    PAUSING = "pausing"
    """A person asked for a pause; the trainer is saving."""
    PAUSED = "paused"
    """Saved; the device is free; a person resumes it."""
    STOPPING = "stopping"
    """A person asked for a stop; the trainer is saving."""
    STOPPED = "stopped"
    """Ended by a person, with its last state saved."""
    SUCCEEDED = "succeeded"
    """Did all its steps, or reached its budget."""
    FAILED = "failed"
    """Ended by an error that another attempt would meet again."""
    LOST = "lost"
    """Its worker is silent; comes back by itself or is queued again."""


class Actor(StrEnum):
    """Who may cause a move."""

    PERSON = "person"
    WORKER = "worker"
    REAPER = "reaper"


class Move(NamedTuple):
    """One edge of the diagram."""

    letter: str
    """Letter in the diagram."""
    source: RunState
    """State before."""
    target: RunState
    """State after."""
    actors: frozenset[Actor]
    """Who may cause it."""


LIVE = frozenset({RunState.STARTING, RunState.RUNNING, RunState.PAUSING, RunState.STOPPING})
"""A worker holds the lease and a trainer may be at work."""
TERMINAL = frozenset({RunState.STOPPED, RunState.SUCCEEDED, RunState.FAILED})
"""Nothing happens any more unless a person asks for it."""
RESUMABLE = frozenset({RunState.PAUSED, RunState.STOPPED, RunState.FAILED})
"""A person may put it back into the queue."""
STOPPABLE = frozenset(
    {
        RunState.QUEUED,
        RunState.STARTING,
        RunState.RUNNING,
        RunState.PAUSING,
        RunState.PAUSED,
        RunState.LOST,
    }
)
"""A person may stop it."""
PAUSABLE = frozenset({RunState.QUEUED, RunState.STARTING, RunState.RUNNING, RunState.LOST})
"""A person may pause it."""
COMMANDABLE = frozenset({RunState.STARTING, RunState.RUNNING})
"""A trainer is there to obey `evaluate_now` and `checkpoint_now`."""

_S = RunState
_PERSON = frozenset({Actor.PERSON})
_WORKER = frozenset({Actor.WORKER})
_REAPER = frozenset({Actor.REAPER})
_EITHER = _WORKER | _REAPER

MOVES: tuple[Move, ...] = (
    Move("a", _S.DRAFT, _S.QUEUED, _PERSON),
    Move("b", _S.QUEUED, _S.STARTING, _WORKER),
    Move("c", _S.QUEUED, _S.STOPPED, _PERSON),
    Move("c", _S.QUEUED, _S.PAUSED, _PERSON),
    Move("c", _S.LOST, _S.STOPPED, _PERSON),
    Move("c", _S.LOST, _S.PAUSED, _PERSON),
    Move("c", _S.PAUSED, _S.STOPPED, _PERSON),
    Move("e", _S.STARTING, _S.RUNNING, _WORKER),
    Move("f", _S.STARTING, _S.PAUSING, _PERSON),
    Move("f", _S.RUNNING, _S.PAUSING, _PERSON),
    Move("g", _S.STARTING, _S.STOPPING, _PERSON),
    Move("g", _S.RUNNING, _S.STOPPING, _PERSON),
    Move("g", _S.PAUSING, _S.STOPPING, _PERSON),
    Move("i", _S.PAUSING, _S.PAUSED, _EITHER),
    Move("i", _S.STOPPING, _S.STOPPED, _EITHER),
    *(Move("j", source, _S.SUCCEEDED, _EITHER) for source in sorted(LIVE)),
    *(Move("k", source, _S.FAILED, _EITHER) for source in sorted(LIVE)),
    Move("j", _S.LOST, _S.SUCCEEDED, _REAPER),
    Move("k", _S.LOST, _S.FAILED, _REAPER),
    Move("l", _S.STARTING, _S.QUEUED, _WORKER),
    Move("l", _S.RUNNING, _S.QUEUED, _WORKER),
    Move("m", _S.STARTING, _S.LOST, _REAPER),
    Move("m", _S.RUNNING, _S.LOST, _REAPER),
    Move("n", _S.LOST, _S.RUNNING, _WORKER),
    Move("o", _S.LOST, _S.QUEUED, _REAPER),
    *(Move("q", source, _S.QUEUED, _PERSON) for source in sorted(RESUMABLE)),
)

_BY_EDGE = {(move.source, move.target): move for move in MOVES}


def find_move(source: RunState, target: RunState) -> Move | None:
    """The move from one state to another, or None when there is none."""
    return _BY_EDGE.get((source, target))


def sources_of(target: RunState, actor: Actor) -> frozenset[RunState]:
    """The states from which this actor may bring a run into `target`."""
    return frozenset(m.source for m in MOVES if m.target is target and actor in m.actors)
