"""The workers page."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from webapp.ui.fragments import wants_fragment
from webapp.ui.people import signed_in
from webapp.workers_page.overview import read_workers


@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """The page; for a script's request only its content."""
    template = "workers/content.html" if wants_fragment(request) else "workers/page.html"
    return render(request, template, {"it": read_workers(signed_in(request))})
