"""A run's page: its head, the curves tab, and the fragments that keep both fresh."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from webapp.runs.access import get_run_for_user, steering_right
from webapp.runs.changed import read_change
from webapp.runs.models import Run
from webapp.runs.next_actions import Offers, next_actions
from webapp.runs.overview import EvalCard, eval_cards, read_overview, summary_cards
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
    more = {"cards": cards, "summary": summary_cards(cards), **_change(request, run, cards)}
    return render(request, "runs/run/curves.html", run_context(request, run, "curves", **more))


@require_safe
def live(request: HttpRequest, number: int) -> HttpResponse:
    """The part of the head that changes while the run lives."""
    run = get_run_for_user(request.user, number)
    return render(request, "runs/run/live.html", run_context(request, run, ""))


@require_safe
def changed(request: HttpRequest, number: int) -> HttpResponse:
    """What the run changed, once it has ended."""
    run = get_run_for_user(request.user, number)
    context = {"run": run, **_change(request, run, eval_cards(run))}
    return render(request, "runs/run/changed.html", context)


@require_safe
def evaluations(request: HttpRequest, number: int) -> HttpResponse:
    """The evaluation cards as they are now."""
    run = get_run_for_user(request.user, number)
    cards = eval_cards(run)
    context = {"run": run, "cards": cards, "summary": summary_cards(cards)}
    return render(request, "runs/run/evaluations.html", context)


def _change(request: HttpRequest, run: Run, cards: list[EvalCard]) -> dict[str, Any]:
    """The card of what changed, and what to do next."""
    change = read_change(run, cards)
    standing = standing_of(request)
    offers = Offers(
        steering=run.project in standing.where(steering_right(request.user, run)),
        launching=bool(standing.launches_in),
    )
    return {"change": change, "next_actions": next_actions(run, cards, change, offers)}
