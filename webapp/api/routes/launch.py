"""Launch runs, try a spec without launching it, restart from a checkpoint."""

from __future__ import annotations

from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router

from webapp.accounts.models import User
from webapp.api.auth import BearerToken, user_of
from webapp.api.bodies import (
    SentDocument,
    checked_spec,
    read_document,
    read_yaml_text,
    with_lines,
)
from webapp.api.checkpoints import CheckpointName, find_checkpoint
from webapp.api.outputs.document import Document
from webapp.api.outputs.runs import RunOut, run_out
from webapp.api.params import LARGEST, RunNumber, Text
from webapp.api.problems import Problem, bad_fields
from webapp.api.projects import launch_project
from webapp.api.replay import answer_once, hash_body
from webapp.api.routes import runs
from webapp.api.scopes import Scope
from webapp.runs.access import get_run_for_user, refuse_without_launch
from webapp.runs.forecast import forecast, queue_now
from webapp.runs.models import Run
from webapp.runs.origins import Origin, find_origin, launch_from
from webapp.runs.refusals import LaunchRefused

router = Router(tags=["Launch"], auth=BearerToken(Scope.LAUNCH))
SPEC_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": {"$ref": "#/components/schemas/RunSpec"}},
            "application/yaml": {"schema": {"type": "string"}},
        },
    }
}
KEY_PARAMETER: dict[str, Any] = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "schema": {"type": "string", "pattern": "^[0-9a-zA-Z_.:-]{1,64}$"},
    "description": (
        "Sending the same request with the same key again, within a day, does nothing and gets "
        "the same answer."
    ),
    "example": "nightly-2026-12-01",
}


class CheckOut(Document):
    """What a launch of the spec would do."""

    name: str
    project: str
    """Slug of the project that the run would belong to."""
    steps: int
    """Optimiser steps of all stages."""
    rollouts: int
    """Completions sampled for training."""
    most_tokens: int
    """Most completion tokens that training can sample."""
    disk_bytes: int
    """Most that the run directory is expected to hold."""
    waiting: int
    """Runs before it in the queue."""
    slots: int
    """Runs that living workers can train at once."""
    warnings: list[str]


ProjectSlug = Annotated[
    Text,
    Query(
        "",
        description=(
            "Slug of the project that the run belongs to; your only one, that of the run it was "
            "made from, or where you launched last when left out. `/me` lists yours."
        ),
        examples=["main"],
    ),
]


class RestartIn(Document):
    """Where to go on from, and with what."""

    checkpoint: CheckpointName = "latest"
    """`latest`, `best` (by held-out pass@1), or the step of a checkpoint that is on disk."""
    spec: dict[str, Any] | str | None = None
    """The whole RunSpec to go on with, or its YAML text; the run's own when left out."""
    project: Text = ""
    """Slug of the project that the new run belongs to; that of the run when left out."""


@runs.router.post(
    "/runs",
    response={201: RunOut},
    operation_id="launch_run",
    summary="Launch a run",
    openapi_extra={**SPEC_BODY, "parameters": [KEY_PARAMETER]},
    auth=BearerToken(Scope.LAUNCH),
    tags=["Launch"],
)
def launch_run(
    request: HttpRequest,
    preset: Annotated[Text, Query("", description="Preset that the spec was made from.")] = "",
    parent: Annotated[
        int | None, Query(ge=1, le=LARGEST, description="Run that the spec was made from.")
    ] = None,
    project: ProjectSlug = "",
) -> HttpResponse:
    """Queue a run. The body is the RunSpec, as JSON or YAML; each error stands at its field."""
    user = user_of(request)
    refuse_without_launch(user)
    sent = read_document(request)

    def deed() -> RunOut:
        values = {"from": str(parent)} if parent is not None else {"preset": preset}
        return run_out(_launch(user, find_origin(user, values), sent, project), user)

    return answer_once(request, user, lambda: hash_body(request), deed)


@router.post(
    "/specs/check",
    response=CheckOut,
    operation_id="check_spec",
    summary="Try a spec without launching it",
    openapi_extra=SPEC_BODY,
    auth=BearerToken(Scope.READ),
)
def check_spec(request: HttpRequest, project: ProjectSlug = "") -> CheckOut:
    """What a launch would do, or what is wrong with which field; nothing is made."""
    chosen = launch_project(user_of(request), project)
    spec = checked_spec(read_document(request), chosen)
    numbers, queue = forecast(spec), queue_now()
    return CheckOut(
        name=spec.name,
        project=chosen.slug,
        steps=numbers.steps,
        rollouts=numbers.rollouts,
        most_tokens=numbers.most_tokens,
        disk_bytes=numbers.disk_bytes,
        waiting=queue.waiting,
        slots=queue.slots,
        warnings=numbers.warnings,
    )


@router.post(
    "/runs/{number}/restart",
    response={201: RunOut},
    operation_id="restart_run",
    summary="Restart from a checkpoint",
    openapi_extra={"parameters": [KEY_PARAMETER]},
)
def restart_run(request: HttpRequest, number: RunNumber, body: RestartIn) -> HttpResponse:
    """A new run that goes on from a checkpoint's weights and optimiser state, at its step."""
    user = user_of(request)
    run = get_run_for_user(user, number)
    refuse_without_launch(user)

    def deed() -> RunOut:
        origin = Origin(checkpoint=find_checkpoint(run, body.checkpoint))
        sent = _spec_sent(origin, body.spec)
        return run_out(_launch(user, origin, sent, body.project), user)

    return answer_once(request, user, lambda: hash_body(request), deed)


def _launch(user: User, origin: Origin, sent: SentDocument, slug: str) -> Run:
    """Launch what was sent. Raises Problem 422 with the form's words."""
    project = launch_project(user, slug, origin.project)
    spec = checked_spec(sent, project)
    try:
        return launch_from(origin, user, spec, "", project)
    except LaunchRefused as refusal:
        if refusal.errors:
            raise bad_fields(with_lines(sent, refusal.errors)) from refusal
        raise Problem(422, refusal.message) from refusal


def _spec_sent(origin: Origin, spec: dict[str, Any] | str | None) -> SentDocument:
    """The spec of a restart. Raises Problem 400."""
    if isinstance(spec, str):
        return read_yaml_text(spec)
    return SentDocument(origin.document() if spec is None else spec, None)
