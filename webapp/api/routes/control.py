"""Steer runs: the same deeds as the buttons of a run's page, with the same refusals.

Roles decide first; somebody else's run needs the scope `admin` besides.
"""

from __future__ import annotations

from typing import Annotated

from django.http import HttpRequest
from ninja import Query, Router
from ninja.responses import Status

from training_core.contract.field_errors import FieldError
from webapp.api.auth import BearerToken, caller_of, lacks_scope, user_of
from webapp.api.outputs.runs import RunOut, run_out
from webapp.api.params import RunNumber, Text
from webapp.api.problems import bad_fields
from webapp.api.routes import runs
from webapp.api.scopes import Scope
from webapp.runs import services
from webapp.runs.access import get_controllable_run_for_user, get_run_for_user
from webapp.runs.models import Run

router = Router(tags=["Control"], auth=BearerToken(Scope.CONTROL))


@router.post("/runs/{number}/stop", response=RunOut, operation_id="stop_run", summary="Stop a run")
def stop_run(request: HttpRequest, number: RunNumber) -> RunOut:
    """End it after the trainer has saved its last whole step. It can be resumed."""
    run = _steered(request, number)
    services.stop_run(run, user_of(request))
    return _now(request, number)


@router.post(
    "/runs/{number}/pause", response=RunOut, operation_id="pause_run", summary="Pause a run"
)
def pause_run(request: HttpRequest, number: RunNumber) -> RunOut:
    """Save and free the device; resume goes on from there."""
    run = _steered(request, number)
    services.pause_run(run, user_of(request))
    return _now(request, number)


@router.post(
    "/runs/{number}/resume", response=RunOut, operation_id="resume_run", summary="Resume a run"
)
def resume_run(request: HttpRequest, number: RunNumber) -> RunOut:
    """Put a paused, stopped or failed run back into the queue, from its newest checkpoint."""
    run = _steered(request, number)
    services.resume_run(run, user_of(request))
    return _now(request, number)


@router.post(
    "/runs/{number}/evaluate",
    response={202: RunOut},
    operation_id="evaluate_run",
    summary="Evaluate now",
)
def evaluate_run(request: HttpRequest, number: RunNumber) -> Status[RunOut]:
    """Have the trainer evaluate on held-out prompts after the current step."""
    run = _steered(request, number)
    services.evaluate_now(run, user_of(request))
    return Status(202, _now(request, number))


@router.post(
    "/runs/{number}/checkpoint",
    response={202: RunOut},
    operation_id="checkpoint_run",
    summary="Save now",
)
def checkpoint_run(request: HttpRequest, number: RunNumber) -> Status[RunOut]:
    """Have the trainer save a checkpoint after the current step."""
    run = _steered(request, number)
    services.checkpoint_now(run, user_of(request))
    return Status(202, _now(request, number))


@router.post(
    "/runs/{number}/archive", response=RunOut, operation_id="archive_run", summary="Put a run away"
)
def archive_run(request: HttpRequest, number: RunNumber) -> RunOut:
    """Take it out of the lists; nothing of it is deleted. Doing it twice changes nothing."""
    return _set_archived(request, number, archived=True)


@router.post(
    "/runs/{number}/unarchive",
    response=RunOut,
    operation_id="unarchive_run",
    summary="Take a run out of the archive",
)
def unarchive_run(request: HttpRequest, number: RunNumber) -> RunOut:
    """Bring it back into the lists. Doing it twice changes nothing."""
    return _set_archived(request, number, archived=False)


@runs.router.delete(
    "/runs/{number}",
    response={204: None},
    operation_id="delete_run",
    summary="Delete a run",
    auth=BearerToken(Scope.CONTROL),
    tags=["Control"],
)
def delete_run(
    request: HttpRequest,
    number: RunNumber,
    name: Annotated[Text, Query(description="The run's name, to show that you mean this one.")],
) -> Status[None]:
    """Delete a finished run with its metrics, rollouts, logs and checkpoints, for good."""
    run = _steered(request, number)
    if name != run.name:
        words = f"It must be the name of run #{number}, letter for letter; nothing is done."
        raise bad_fields([FieldError("name", words)])
    services.delete_run(run, user_of(request))
    return Status(204, None)


def _set_archived(request: HttpRequest, number: int, *, archived: bool) -> RunOut:
    run = _steered(request, number)
    if (run.archived_at is not None) != archived:
        services.archive_run(run, user_of(request))
    return _now(request, number)


def _steered(request: HttpRequest, number: int) -> Run:
    """The run, to steer it. Raises Http404, PermissionDenied, or Problem 403 without the scope."""
    caller = caller_of(request)
    run = get_controllable_run_for_user(caller.user, number)
    if run.owner_id != caller.user.pk and Scope.ADMIN not in caller.token.scopes:
        raise lacks_scope(caller.token, Scope.ADMIN, f", which a run of {run.owner}'s needs")
    return run


def _now(request: HttpRequest, number: int) -> RunOut:
    """The run as the deed has left it."""
    user = user_of(request)
    return run_out(get_run_for_user(user, number), user)
