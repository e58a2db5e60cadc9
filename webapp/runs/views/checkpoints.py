"""The checkpoints tab: what is saved, what was removed, and where to go on from."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from webapp.runs.access import get_run_for_user
from webapp.runs.models import Run
from webapp.runs.views.detail import run_context


@require_safe
def checkpoints(request: HttpRequest, number: int) -> HttpResponse:
    """Those on disk first; those that retention removed behind a fold."""
    run = get_run_for_user(request.user, number)
    found = list(run.checkpoints.order_by("-step"))
    context = run_context(
        request,
        run,
        "checkpoints",
        kept=[checkpoint for checkpoint in found if checkpoint.removed_at is None],
        removed=[checkpoint for checkpoint in found if checkpoint.removed_at is not None],
        children=list(Run.objects.visible_to(request.user).filter(parent=run).order_by("number")),
    )
    return render(request, "runs/run/checkpoints.html", context)
