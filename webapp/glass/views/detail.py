"""One step under glass: live while it is taken, and what came out.

A tryout is shown on the check page of its dataset, which asks here for what moves.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from pydantic import ValidationError

from webapp.glass.access import can_end, get_glass_step_for_user
from webapp.glass.models import GlassStep
from webapp.glass.page import prompt_words, read_view
from webapp.glass.tokens import token_rows
from webapp.glass.tryout_page import read_tryout_view
from webapp.ui.people import signed_in


@require_safe
def detail(request: HttpRequest, glass_id: UUID) -> HttpResponse:
    """The page of one step; of a tryout the check page of its dataset."""
    step = get_glass_step_for_user(signed_in(request), glass_id)
    if not step.is_tryout:
        return _render(request, step, "glass/detail.html")
    if step.version is None:
        raise Http404(_("The dataset version of this tryout is gone."))
    check = reverse("datasets:check", args=[step.version.pk])
    return redirect(f"{check}?tryout={step.pk}")


@never_cache
@require_safe
def live(request: HttpRequest, glass_id: UUID) -> HttpResponse:
    """The fragment that moves while the step is taken, and ends as the result."""
    step = get_glass_step_for_user(signed_in(request), glass_id)
    return _render(request, step, "glass/tryout.html" if step.is_tryout else "glass/body.html")


@require_safe
def tokens(request: HttpRequest, glass_id: UUID, place: int) -> HttpResponse:
    """The table of one completion's tokens."""
    step = get_glass_step_for_user(signed_in(request), glass_id)
    try:
        completions = step.directory.read_result().completions
    except (OSError, ValidationError):
        raise Http404(_("This step has no result.")) from None
    if place >= len(completions):
        words = _("The group has %(size)s completions, counted from 0.")
        raise Http404(words % {"size": len(completions)})
    rows = token_rows(completions[place])
    return render(request, "glass/tokens.html", {"rows": rows, "place": place})


@require_safe
def result(request: HttpRequest, glass_id: UUID) -> HttpResponseBase:
    """The result as the process wrote it."""
    step = get_glass_step_for_user(signed_in(request), glass_id)
    try:
        file = step.directory.result_file.open("rb")
    except OSError:
        raise Http404(_("This step has no result.")) from None
    name = f"glass-{step.pk}.json"
    return FileResponse(file, as_attachment=True, filename=name, content_type="application/json")


def _render(request: HttpRequest, step: GlassStep, template: str) -> HttpResponse:
    """The page or its moving part."""
    context: dict[str, Any] = {"may_end": can_end(signed_in(request), step)}
    if step.is_tryout:
        context["it"] = read_tryout_view(step)
    else:
        it = read_view(step)
        context |= {"it": it, "prompt": prompt_words(it.spec)}
    return render(request, template, context)
