"""A run's page: its head, the curves tab, and the fragments that keep both fresh."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from webapp.runs.access import get_run_for_user
from webapp.runs.models import Run
from webapp.runs.overview import eval_cards, read_overview, summary_cards
from webapp.ui.projects import standing_of


def run_context(request: HttpRequest, run: Run, tab: str, **more: Any) -> dict[str, Any]:
    """What every tab's template needs."""
    overview = read_overview(run, request.user, standing_of(request))
    return {"run": run, "tab": tab, "overview": overview, **more}


@require_safe
def detail(request: HttpRequest, number: int) -> HttpResponse:
    """Curves, under the newest evaluations."""
    run = get_run_for_user(request.user, number)
    cards = eval_cards(run)
    context = run_context(request, run, "curves", cards=cards, summary=summary_cards(cards))
    return render(request, "runs/run/curves.html", context)


@require_safe
def live(request: HttpRequest, number: int) -> HttpResponse:
    """The part of the head that changes while the run lives."""
    run = get_run_for_user(request.user, number)
    return render(request, "runs/run/live.html", run_context(request, run, ""))


@require_safe
def evaluations(request: HttpRequest, number: int) -> HttpResponse:
    """The evaluation cards as they are now."""
    run = get_run_for_user(request.user, number)
    cards = eval_cards(run)
    context = {"run": run, "cards": cards, "summary": summary_cards(cards)}
    return render(request, "runs/run/evaluations.html", context)
