"""The models page: what runs start from, what they left, what can be taken away."""

from __future__ import annotations

import re

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from webapp.registry.overview import bases_for, checkpoints_page, list_exports, with_results
from webapp.ui.people import signed_in
from webapp.ui.projects import current_project


@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """Base models, exports, and a page of checkpoints."""
    user, project = signed_in(request), current_project(request)
    words = request.GET.get("q", "").strip()[:120].replace("\0", "")
    wanted = request.GET.get("page", "")
    number = int(wanted) if re.fullmatch("[0-9]{1,6}", wanted) else 1
    page = checkpoints_page(user, project, words, number)
    context = {
        "bases": bases_for(user, project),
        "exports": list_exports(user, project),
        "page": page,
        "checkpoints": with_results(list(page)),
        "words": words,
    }
    return render(request, "registry/index.html", context)


@never_cache
@require_safe
def exports(request: HttpRequest) -> HttpResponse:
    """The list of exports as it is now."""
    found = list_exports(signed_in(request), current_project(request))
    return render(request, "registry/exports.html", {"exports": found})


@never_cache
@require_safe
def bases(request: HttpRequest) -> HttpResponse:
    """The base models as they are now, while one is being prepared."""
    found = bases_for(signed_in(request), current_project(request))
    return render(request, "registry/bases.html", {"bases": found})
