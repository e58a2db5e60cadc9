"""The rollouts tab of a run."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from webapp.rollouts.browse import RolloutQuery, browse
from webapp.runs.access import get_run_for_user
from webapp.runs.views.detail import run_context


@require_safe
def rollouts(request: HttpRequest, number: int) -> HttpResponse:
    """Steps, filters and one group of completions."""
    run = get_run_for_user(request.user, number)
    browser = browse(run.pk, RolloutQuery.from_address(request.GET.dict()))
    return render(
        request, "runs/run/rollouts.html", run_context(request, run, "rollouts", browser=browser)
    )
