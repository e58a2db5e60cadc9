"""Runs as programs see them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from webapp.accounts.models import User
from webapp.api.outputs.document import Document
from webapp.api.outputs.numbers import Number, plain, plain_stored
from webapp.runs.models import Attempt, Run, RunEvent
from webapp.runs.status import RunState


class PhaseOut(Document):
    """What the trainer does inside the current step."""

    phase: str
    """load, rollout, reward, update, sft, evaluate or checkpoint."""
    step: int
    """The step being worked on, from 1; 0 before the first."""
    done: int
    """Items done."""
    total: int
    """Items to do; 0 when unknown."""
    unit: str
    """What is counted."""
    tokens_per_s: Number | None
    """Tokens per second, where the phase handles tokens."""


class RunOut(Document):
    """One run as it is now."""

    id: UUID
    """Its id in files and charts."""
    number: int
    """What people call it: 12 for #12."""
    name: str
    """Its name."""
    project: str
    """Slug of the project that it belongs to."""
    owner: str
    """User name of who launched it."""
    state: RunState
    """Where it is in its life."""
    cause: str
    """Stable short name of why it is in this state."""
    message: str
    """The same in a sentence."""
    advice: str
    """What to do about it."""
    is_terminal: bool
    """Whether nothing happens any more by itself."""
    step: int
    """Optimiser steps done."""
    total_steps: int
    """Optimiser steps of all stages together."""
    stage: str
    """Name of the current stage; empty before the first."""
    phase: PhaseOut | None
    """What happens inside the step; null while no trainer is at work."""
    eta_s: Number | None
    """Seconds to the end, as of the last step; null when unknown."""
    latest: dict[str, Number | str]
    """Last value of each headline metric."""
    preset: str
    """Preset that it was made from; empty for none."""
    parent: int | None
    """Number of the run that it was made from; null also where you may not see that one."""
    attempt: int
    """Number of the newest attempt; 0 before the first."""
    created_at: datetime
    queued_at: datetime | None
    started_at: datetime | None
    """First claim by a worker."""
    finished_at: datetime | None
    archived_at: datetime | None
    """When it was put away; null when it is not."""


class RunPage(Document):
    """One page of runs, the newest first."""

    items: list[RunOut]
    next_cursor: int | None
    """Give it as `cursor` for the next page; null on the last."""


class AttemptOut(Document):
    """One trainer process of a run."""

    number: int
    """From 1."""
    worker: str
    """Worker that supervised it."""
    device: str
    """What it computed on."""
    started_at: datetime
    ended_at: datetime | None
    start_step: int | None
    """Step of the checkpoint it went on from; null until the trainer has said so."""
    last_step: int
    """Steps done when it was last heard of."""
    outcome: str
    """How it ended; empty while it runs."""
    cause: str
    """Stable short name of why."""
    message: str
    """The same in a sentence."""
    advice: str
    """What to do about it."""


class EventOut(Document):
    """One line of the log of control: a change of state, a wish, an edit."""

    id: int
    """Grows from event to event."""
    at: datetime
    kind: str
    """`state`, `wish` or `edit`."""
    from_state: str
    """State before; empty where nothing changed."""
    to_state: str
    """State after; empty where nothing changed."""
    actor: str
    """User name, worker name, or `reaper`."""
    cause: str
    """Stable short name of why."""
    data: dict[str, Any]
    """What else was said."""


class RunHistory(Document):
    """Who did what with a run, and what its trainer processes came to."""

    attempts: list[AttemptOut]
    """The newest first."""
    events: list[EventOut]
    """The newest first, at most 500."""


def run_out(run: Run, user: User) -> RunOut:
    """The answer for a run that the user may see."""
    return runs_out([run], user)[0]


def runs_out(runs: Sequence[Run], user: User) -> list[RunOut]:
    """The answers for runs that the user may see; one query for all of their parents."""
    asked = {run.parent_id for run in runs if run.parent_id is not None}
    seen = Run.objects.visible_to(user).filter(pk__in=asked) if asked else Run.objects.none()
    parents: dict[UUID, int] = dict(seen.values_list("pk", "number"))
    return [_run_out(run, parents.get(run.parent_id) if run.parent_id else None) for run in runs]


def _run_out(run: Run, parent: int | None) -> RunOut:
    """The answer for one run."""
    fields = {name: getattr(run, name) for name in RunOut.model_fields if name not in _MADE}
    return RunOut(
        **fields,
        project=run.project.slug,
        owner=run.owner.get_username(),
        phase=_phase_out(run.phase),
        eta_s=plain(run.eta_s),
        latest={name: plain_stored(value) for name, value in run.latest.items()},
        parent=parent,
    )


_MADE = {"project", "owner", "phase", "eta_s", "latest", "parent"}


def _phase_out(phase: Any) -> PhaseOut | None:
    """The stored phase event as an answer."""
    if not isinstance(phase, dict):
        return None
    kept = {name: phase.get(name) for name in PhaseOut.model_fields}
    return PhaseOut(**{**kept, "tokens_per_s": plain_stored(kept["tokens_per_s"])})


def attempt_out(attempt: Attempt) -> AttemptOut:
    """The answer for an attempt."""
    return AttemptOut(**{name: getattr(attempt, name) for name in AttemptOut.model_fields})


def event_out(event: RunEvent) -> EventOut:
    """The answer for an event of control."""
    return EventOut(**{name: getattr(event, name) for name in EventOut.model_fields})
