"""The one function that changes a run's state.

Called by `services` (persons) and by `webapp.control` (workers and the reaper), nowhere else. Each
move is an update guarded by the old state whose count is checked, with its event, its webhooks and
its live hint in the same transaction: of two processes that make the same move one wins, the other
is told.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from webapp.metrics import live
from webapp.runs import status
from webapp.runs.models import Run, RunEvent
from webapp.runs.status import Actor, RunState
from webapp.webhooks.outbox import note_move


class IllegalMove(RuntimeError):
    """The table of `status` has no such move for this actor: a fault of the program."""


class MoveLost(RuntimeError):
    """The run has left the state that the caller saw: somebody else was first."""


def lock_run(run_id: UUID) -> Run:
    """The run with its row locked until the transaction ends. Raises Run.DoesNotExist."""
    return Run.objects.select_for_update(no_key=True).get(pk=run_id)


@transaction.atomic
def move(
    run: Run,
    target: RunState,
    *,
    actor: Actor,
    who: str,
    cause: str,
    message: str = "",
    advice: str = "",
    columns: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Bring `run` from the state it was read in to `target`, setting `columns` with it.

    `run` is brought up to date. Raises IllegalMove, or MoveLost when the row has changed.
    """
    source = run.run_state
    legal = status.find_move(source, target)
    if legal is None or actor not in legal.actors:
        raise IllegalMove(f"{actor} may not bring a run from {source} to {target}")
    changes = {
        "state": target.value,
        "cause": cause,
        "message": message,
        "advice": advice,
        **_columns_of(target),
        **columns,
    }
    guard = Run.objects.filter(pk=run.pk, state=source, fencing_token=run.fencing_token)
    if guard.update(**changes) != 1:
        raise MoveLost(f"run #{run.number} is no longer {source}")
    run.refresh_from_db()  # columns may be expressions, such as the database's own time
    RunEvent.objects.create(
        run=run,
        kind="state",
        from_state=source,
        to_state=target,
        actor=who,
        cause=cause,
        data={"message": message} if message else {},
    )
    note_move(run)
    announce_state(run)


def announce_state(run: Run) -> None:
    """Tell open pages of the run and of the table that the state is another one."""
    hint = {
        "run": str(run.pk),
        "number": run.number,
        "state": run.state,
        "cause": run.cause,
        "attempt": run.attempt,
        "step": run.step,
    }
    live.publish(f"run:{run.pk}", "state", hint)
    live.publish(live.project_topic("runs", run.project_id), "state", hint)


def _columns_of(target: RunState) -> dict[str, Any]:
    """What a state implies for the columns around it."""
    now = timezone.now()
    free = {"lease_owner": "", "lease_until": None, "phase": None, "eta_s": None}
    match target:
        case RunState.QUEUED:
            return {**free, "queued_at": now, "sent_at": None, "finished_at": None}
        case RunState.PAUSED:
            return free
        case RunState.STOPPED | RunState.SUCCEEDED | RunState.FAILED:
            return {**free, "finished_at": now}
        case _:
            return {}
