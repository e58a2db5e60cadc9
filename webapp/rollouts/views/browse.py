"""The rollouts tab's content alone, for scripts that change a filter or follow a live run."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from webapp.rollouts.browse import RolloutQuery, browse
from webapp.runs.access import get_run_for_user


@require_safe
def index(request: HttpRequest, number: int) -> HttpResponse:
    """The fragment."""
    run = get_run_for_user(request.user, number)
    browser = browse(run.pk, RolloutQuery.from_address(request.GET.dict()))
    return render(request, "rollouts/browser.html", {"run": run, "browser": browser})
