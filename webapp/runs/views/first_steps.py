"""The list of first steps as a fragment that asks for itself until it is over."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from webapp.runs.first_steps import read_first_steps
from webapp.ui.people import signed_in
from webapp.ui.projects import standing_of


@never_cache
@require_safe
def first_steps(request: HttpRequest) -> HttpResponse:
    """The list as it is now; nothing when it is over."""
    steps = read_first_steps(signed_in(request), standing_of(request).may_launch)
    return render(request, "runs/launch/first_steps.html", {"steps": steps})
