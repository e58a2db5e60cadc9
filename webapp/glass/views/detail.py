"""One step under glass: live while it is taken, and what came out."""

from __future__ import annotations

from uuid import UUID

from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from pydantic import ValidationError

from webapp.glass.access import can_end, get_glass_step_for_user
from webapp.glass.page import prompt_words, read_view
from webapp.glass.tokens import token_rows
from webapp.ui.people import signed_in


@require_safe
def detail(request: HttpRequest, glass_id: UUID) -> HttpResponse:
    """The page of one step."""
    return _render(request, glass_id, "glass/detail.html")


@never_cache
@require_safe
def live(request: HttpRequest, glass_id: UUID) -> HttpResponse:
    """The fragment that moves while the step is taken, and ends as the result."""
    return _render(request, glass_id, "glass/body.html")


@require_safe
def tokens(request: HttpRequest, glass_id: UUID, place: int) -> HttpResponse:
    """The table of one completion's tokens."""
    step = get_glass_step_for_user(signed_in(request), glass_id)
    try:
        completions = step.directory.read_result().completions
    except (OSError, ValidationError):
        raise Http404("This step has no result.") from None
    if place >= len(completions):
        raise Http404(f"The group has {len(completions)} completions, counted from 0.")
    rows = token_rows(completions[place])
    return render(request, "glass/tokens.html", {"rows": rows, "place": place})


@require_safe
def result(request: HttpRequest, glass_id: UUID) -> HttpResponseBase:
    """The result as the process wrote it."""
    step = get_glass_step_for_user(signed_in(request), glass_id)
    try:
        file = step.directory.result_file.open("rb")
    except OSError:
        raise Http404("This step has no result.") from None
    name = f"glass-{step.pk}.json"
    return FileResponse(file, as_attachment=True, filename=name, content_type="application/json")


def _render(request: HttpRequest, glass_id: UUID, template: str) -> HttpResponse:
    """The page or its moving part."""
    user = signed_in(request)
    step = get_glass_step_for_user(user, glass_id)
    it = read_view(step)
    context = {"it": it, "may_end": can_end(user, step), "prompt": prompt_words(it.spec)}
    return render(request, template, context)
