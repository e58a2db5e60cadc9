"""The home page."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from webapp.home.overview import read_home
from webapp.runs.first_steps import read_first_steps
from webapp.runs.origins import new_key
from webapp.runs.preset_cards import preset_cards
from webapp.ui.fragments import wants_fragment
from webapp.ui.people import signed_in
from webapp.ui.projects import standing_of


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """The page; for a script's request only what changes by itself."""
    user, standing = signed_in(request), standing_of(request)
    context = {"home": read_home(user, standing.current)}
    if wants_fragment(request):
        return render(request, "home/content.html", context)
    steps = read_first_steps(user, standing.may_launch)
    more: dict[str, Any] = {"steps": steps, "preset_key": new_key()}
    if not steps.has_launched:
        more["cards"] = preset_cards(user)
    return render(request, "home/page.html", {**context, **more})
