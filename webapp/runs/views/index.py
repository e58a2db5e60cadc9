"""The table of runs, and one row of it for live pages."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from webapp.runs.access import get_run_for_user
from webapp.runs.first_steps import read_first_steps
from webapp.runs.listing import RunQuery, read_page
from webapp.runs.origins import new_key
from webapp.runs.preset_cards import preset_cards
from webapp.ui.fragments import wants_fragment
from webapp.ui.people import signed_in
from webapp.ui.projects import standing_of


@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """The page; for a script's request only the table."""
    user, standing = signed_in(request), standing_of(request)
    project = standing.current
    asked = {**request.GET.dict(), "project": project.slug if project else ""}
    page = read_page(user, RunQuery.from_address(asked))
    if wants_fragment(request):
        return render(request, "runs/index/table.html", {"page": page})
    steps = read_first_steps(user, standing.may_launch)
    context: dict[str, Any] = {"page": page, "steps": steps, "preset_key": new_key()}
    if not steps.has_launched:
        context["cards"] = preset_cards(user)
    return render(request, "runs/index/page.html", context)


@require_safe
def row(request: HttpRequest, number: int) -> HttpResponse:
    """One row as it is now."""
    run = get_run_for_user(request.user, number)
    return render(request, "runs/index/row.html", {"run": run})
