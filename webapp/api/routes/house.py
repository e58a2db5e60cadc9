"""Who the caller is, which presets there are, who works."""

from __future__ import annotations

from typing import Annotated

from django.http import Http404, HttpRequest
from ninja import Path, Router

from training_core.contract.presets import PRESETS, find_preset
from webapp.api.auth import BearerToken, caller_of, user_of
from webapp.api.outputs.house import (
    CallerOut,
    PresetList,
    PresetOut,
    WorkersOut,
    caller_out,
    preset_out,
    queue_out,
    worker_out,
)
from webapp.api.params import Text
from webapp.api.projects import roles_of
from webapp.api.scopes import Scope
from webapp.workers_page.overview import read_workers

router = Router(tags=["House"], auth=BearerToken(Scope.READ))


@router.get("/me", response=CallerOut, operation_id="get_me", summary="Who am I")
def get_me(request: HttpRequest) -> CallerOut:
    """Whom the token acts for, its scopes and its end, and the projects with the role in each."""
    caller = caller_of(request)
    return caller_out(caller, roles_of(caller.user))


@router.get("/presets", response=PresetList, operation_id="list_presets", summary="List presets")
def list_presets(request: HttpRequest) -> PresetList:
    """Whole specs that are known to work; post one to `/runs`."""
    return PresetList(items=[preset_out(preset) for preset in PRESETS])


@router.get(
    "/presets/{slug}", response=PresetOut, operation_id="get_preset", summary="Get a preset"
)
def get_preset(
    request: HttpRequest,
    slug: Annotated[Text, Path(description="Its slug.", examples=["tiny-model"])],
) -> PresetOut:
    """One preset with its spec."""
    preset = find_preset(slug)
    if preset is None:
        raise Http404(f"There is no preset {slug}.")
    return preset_out(preset)


@router.get("/workers", response=WorkersOut, operation_id="list_workers", summary="List workers")
def list_workers(request: HttpRequest) -> WorkersOut:
    """Worker processes of the last day, and how many runs wait for them."""
    view = read_workers(user_of(request))
    return WorkersOut(
        workers=[worker_out(worker) for worker in view.workers],
        queues=[queue_out(queue) for queue in view.queues],
    )
