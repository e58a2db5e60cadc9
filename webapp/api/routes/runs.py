"""Find runs and read one: its state, its spec, its history."""

from __future__ import annotations

from typing import Annotated, Any

from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from ninja import Query, Router

from training_core.contract.yaml_text import dump_yaml, spec_to_yaml
from webapp.api.auth import BearerToken, user_of
from webapp.api.outputs.runs import (
    RunHistory,
    RunOut,
    RunPage,
    attempt_out,
    event_out,
    run_out,
    runs_out,
)
from webapp.api.params import Cursor, Limit, RunNumber, Text
from webapp.api.scopes import Scope
from webapp.runs.access import get_run_for_user
from webapp.runs.models import Run, RunQuerySet
from webapp.runs.overview import spec_of
from webapp.runs.status import RunState

router = Router(tags=["Runs"], auth=BearerToken(Scope.READ))
LISTED_EVENTS = 500

States = Annotated[list[RunState], Query([], description="Only these states; repeat it for more.")]


@router.get("/runs", response=RunPage, operation_id="list_runs", summary="List runs")
def list_runs(
    request: HttpRequest,
    state: States,
    q: Annotated[Text, Query("", description="Words of the name, or `#12`.")] = "",
    owner: Annotated[Text, Query("", description="User name of the owner.")] = "",
    preset: Annotated[Text, Query("", description="Slug of the preset.")] = "",
    project: Annotated[Text, Query("", description="Slug of the project.")] = "",
    archived: Annotated[bool, Query(description="Those put away instead.")] = False,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> RunPage:
    """Runs that you may see, the newest first, page by page."""
    user = user_of(request)
    runs = Run.objects.visible_to(user).filter(archived_at__isnull=not archived)
    if state:
        runs = runs.filter(state__in=[one.value for one in state])
    exact = {"owner__username": owner, "preset": preset, "project__slug": project}
    runs = runs.filter(**{name: value for name, value in exact.items() if value})
    if cursor is not None:
        runs = runs.filter(number__lt=cursor)
    runs = _named(runs, q).select_related("owner", "project").defer("spec", "pace")
    found = list(runs.order_by("-number")[: limit + 1])
    following = found[limit - 1].number if len(found) > limit else None
    return RunPage(items=runs_out(found[:limit], user), next_cursor=following)


@router.get("/runs/{number}", response=RunOut, operation_id="get_run", summary="Get a run")
def get_run(request: HttpRequest, number: RunNumber) -> RunOut:
    """A run as it is now: state, step, phase, the last value of each headline metric."""
    user = user_of(request)
    return run_out(get_run_for_user(user, number), user)


@router.get(
    "/runs/{number}/spec",
    response=dict[str, Any],
    operation_id="get_spec",
    summary="Get a run's spec",
)
def get_spec(request: HttpRequest, number: RunNumber) -> dict[str, Any]:
    """The frozen RunSpec, whole with all defaults. Post it to `/runs` to do the same again."""
    run = get_run_for_user(user_of(request), number)
    spec = spec_of(run)
    return run.spec if spec is None else spec.model_dump(mode="json")


@router.get(
    "/runs/{number}/spec.yaml",
    operation_id="get_spec_yaml",
    summary="Get a run's spec as YAML",
    openapi_extra={
        "responses": {200: {"content": {"application/yaml": {"schema": {"type": "object"}}}}}
    },
)
def get_spec_yaml(request: HttpRequest, number: RunNumber) -> HttpResponse:
    """The frozen RunSpec as a YAML text that `temper launch` and the launch page read."""
    run = get_run_for_user(user_of(request), number)
    spec = spec_of(run)
    text = dump_yaml(run.spec) if spec is None else spec_to_yaml(spec)
    return HttpResponse(text, content_type="application/yaml; charset=utf-8")


@router.get(
    "/runs/{number}/history",
    response=RunHistory,
    operation_id="get_history",
    summary="Get a run's history",
)
def get_history(request: HttpRequest, number: RunNumber) -> RunHistory:
    """Its attempts with how each ended, and the log of who asked for what."""
    run = get_run_for_user(user_of(request), number)
    return RunHistory(
        attempts=[attempt_out(attempt) for attempt in run.attempts.order_by("-number")],
        events=[event_out(event) for event in run.events.order_by("-pk")[:LISTED_EVENTS]],
    )


def _named(runs: RunQuerySet, words: str) -> RunQuerySet:
    """Those whose name holds the words, or whose number they are."""
    number = words.removeprefix("#")
    if number.isascii() and number.isdecimal() and len(number) < 10:
        return runs.filter(Q(number=int(number)) | Q(name__icontains=words))
    return runs.filter(name__icontains=words) if words else runs
