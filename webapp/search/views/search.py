"""The search: a fragment for the palette, a page for browsers without scripts."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from webapp.search.find import find_everything
from webapp.ui.fragments import wants_fragment
from webapp.ui.people import signed_in
from webapp.ui.projects import standing_of


@never_cache
@require_safe
def search(request: HttpRequest) -> HttpResponse:
    """Groups of hits for `q`; `here` and `recent` are paths that the palette sends along."""
    query = request.GET.get("q", "").strip()
    here = request.GET.get("here", "")
    recent = request.GET.getlist("recent")
    groups = find_everything(signed_in(request), standing_of(request), query, here, recent)
    context = {"query": query, "groups": groups, "count": sum(len(g.hits) for g in groups)}
    name = "search/results.html" if wants_fragment(request) else "search/page.html"
    return render(request, name, context)
