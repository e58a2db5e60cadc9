"""Who may work on a run: claim, lease, fencing token, orders.

Called by workers through `webapp.lifecycle`. A claim is a guarded move `queued -> starting`; of two
deliveries of one message one gets the claim. Each claim has a token larger than all before it, and
every later call of its holder is guarded by that token. Leases are counted on the database's clock,
so hosts need not agree on the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone
from pydantic import ValidationError

from training_core.contract.control import Command, ControlCommand
from training_core.contract.field_errors import field_errors
from training_core.contract.rundir import RunDir
from training_core.contract.spec import RunSpec
from webapp.control.attempts import close_attempt, close_open_attempts
from webapp.control.verdicts import Verdict
from webapp.runs import status
from webapp.runs.models import Attempt, ControlRequest, Run
from webapp.runs.moves import move
from webapp.runs.status import Actor, RunState

LEASE = timedelta(seconds=30)
"""Ten heartbeats; a restart of PostgreSQL takes less."""

CARRIED_OVER: tuple[Command, ...] = ("evaluate_now", "checkpoint_now")
"""Asked of one attempt and not done by its end, these are asked of the next. An end is not: it has
come by then."""


class LeaseLost(RuntimeError):
    """The run is somebody else's by now, or has ended: the holder must end its trainer."""


@dataclass(frozen=True)
class Claim:
    """The right to work on one run."""

    run_id: UUID
    number: int
    """What people call the run."""
    attempt: int
    token: int
    worker: str
    spec: RunSpec
    run_dir: RunDir
    models_dir: Path
    """Where the prepared built-in models lie."""


@dataclass(frozen=True)
class Orders:
    """What the supervisor shall see to."""

    state: RunState
    """`pausing` and `stopping` are wishes; `starting` and `running` mean go on."""
    commands: tuple[ControlCommand, ...]
    """Not yet written to `control.jsonl`."""


@transaction.atomic
def claim_run(run_id: UUID, worker: str, boot: str) -> Claim | None:
    """Take a queued run and open its next attempt; None when it is not there to be taken."""
    run = Run.objects.select_for_update(no_key=True).filter(pk=run_id).first()
    if run is None or run.state != RunState.QUEUED:
        return None
    close_open_attempts(run)
    number = run.attempt + 1
    move(
        run,
        RunState.STARTING,
        actor=Actor.WORKER,
        who=worker,
        cause="claimed",
        columns={
            "attempt": number,
            "fencing_token": run.fencing_token + 1,
            "lease_owner": worker,
            "lease_until": Now() + LEASE,
            "heartbeat_at": Now(),
            "started_at": run.started_at or timezone.now(),
        },
    )
    attempt = Attempt.objects.create(
        run=run, number=number, worker=worker, boot=boot, started_at=timezone.now()
    )
    run.control_requests.filter(command__in=CARRIED_OVER, applied_at=None).update(
        attempt=number, sent_at=None
    )
    try:
        spec = run.read_spec()
    except ValidationError as error:
        _fail_unreadable(run, attempt, error)
        return None
    return Claim(
        run_id=run.pk,
        number=run.number,
        attempt=number,
        token=run.fencing_token,
        worker=worker,
        spec=spec,
        run_dir=run.run_dir,
        models_dir=Path(settings.MODELS_DIR),
    )


def heartbeat(claim: Claim, lease: timedelta = LEASE) -> Orders:
    """Renew the lease; a run that was given up as lost is revived. Raises LeaseLost."""
    mine = Run.objects.filter(pk=claim.run_id, fencing_token=claim.token)
    renewed = mine.filter(state__in=status.LIVE).update(
        heartbeat_at=Now(), lease_until=Now() + lease
    )
    if not renewed:
        _revive(claim, lease)
    return read_orders(claim)


def read_orders(claim: Claim) -> Orders:
    """State and new commands, without renewing anything. Raises LeaseLost."""
    mine = Run.objects.filter(pk=claim.run_id, fencing_token=claim.token)
    state = mine.values_list("state", flat=True).first()
    if state is None or state not in status.LIVE | {RunState.LOST}:
        raise LeaseLost(f"run #{claim.number} is {state or 'claimed by another worker'}")
    unsent = ControlRequest.objects.filter(
        run_id=claim.run_id, attempt=claim.attempt, sent_at=None
    ).select_related("actor")
    return Orders(RunState(state), tuple(_command(request) for request in unsent))


def commands_sent(claim: Claim, commands: Sequence[ControlCommand]) -> None:
    """The commands stand in `control.jsonl`."""
    ControlRequest.objects.filter(
        run_id=claim.run_id, pk__in=[command.id for command in commands], sent_at=None
    ).update(sent_at=timezone.now())


@transaction.atomic
def _revive(claim: Claim, lease: timedelta) -> None:
    """A late heartbeat of the rightful holder brings a lost run back."""
    run = Run.objects.select_for_update(no_key=True).filter(pk=claim.run_id).first()
    if run is None:
        raise LeaseLost(f"run #{claim.number} was deleted")
    if run.fencing_token != claim.token or run.state not in status.LIVE | {RunState.LOST}:
        raise LeaseLost(f"run #{claim.number} is {run.state}, token {run.fencing_token}")
    columns = {"heartbeat_at": Now(), "lease_until": Now() + lease}
    if run.state == RunState.LOST:
        move(
            run,
            RunState.RUNNING,
            actor=Actor.WORKER,
            who=claim.worker,
            cause="revived",
            message="The worker was silent for a while and is back; nothing was lost.",
            columns=columns,
        )
    else:
        Run.objects.filter(pk=run.pk).update(**columns)


def _fail_unreadable(run: Run, attempt: Attempt, error: ValidationError) -> None:
    """The stored spec is of a form that this version does not know."""
    what = "; ".join(f"{path}: {text}" for path, text in field_errors(error)[:3])
    message = f"The stored spec cannot be read: {what}"
    advice = "Launch a copy of the run; the form shows what has changed."
    close_attempt(attempt, Verdict("failed", "bad_spec", message, advice))
    move(
        run,
        RunState.FAILED,
        actor=Actor.WORKER,
        who=attempt.worker,
        cause="bad_spec",
        message=message,
        advice=advice,
    )


def _command(request: ControlRequest) -> ControlCommand:
    """The line of `control.jsonl` for a wish."""
    return ControlCommand.model_validate(
        {
            "id": str(request.pk),
            "attempt": request.attempt,
            "t": request.asked_at.timestamp(),
            "command": request.command,
            "actor": request.actor.get_username() if request.actor else "system",
        }
    )
