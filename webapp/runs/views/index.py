"""The table of runs, and one row of it for live pages."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from training_core.contract.presets import PRESETS
from webapp.runs.access import get_run_for_user
from webapp.runs.listing import RunQuery, read_page
from webapp.runs.origins import new_key
from webapp.ui.fragments import wants_fragment
from webapp.ui.people import signed_in
from webapp.ui.projects import current_project


@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """The page; for a script's request only the table."""
    project = current_project(request)
    asked = {**request.GET.dict(), "project": project.slug if project else ""}
    page = read_page(signed_in(request), RunQuery.from_address(asked))
    template = "runs/index/table.html" if wants_fragment(request) else "runs/index/page.html"
    context = {"page": page, "presets": PRESETS, "preset_key": new_key()}
    return render(request, template, context)


@require_safe
def row(request: HttpRequest, number: int) -> HttpResponse:
    """One row as it is now."""
    run = get_run_for_user(request.user, number)
    return render(request, "runs/index/row.html", {"run": run})
