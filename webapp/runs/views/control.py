"""Steering a run: a question where the consequence needs one, then the deed."""

from __future__ import annotations

import json

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from webapp.runs.access import get_controllable_run_for_user, get_run_for_user
from webapp.runs.models import Run
from webapp.runs.moves import MoveLost
from webapp.runs.refusals import ControlRefused
from webapp.runs.steering import COMMANDS, Command
from webapp.runs.views.detail import run_context
from webapp.ui.fragments import wants_fragment
from webapp.ui.people import signed_in


@require_http_methods(["GET", "POST"])
def control(request: HttpRequest, number: int, command: str) -> HttpResponse:
    """GET asks, POST does. A script gets the fresh head of the page, a browser the page."""
    wanted = COMMANDS.get(command)
    if wanted is None:
        raise Http404(_("A run has no command %(command)s.") % {"command": command})
    run = get_controllable_run_for_user(request.user, number)
    if request.method == "GET":
        return _ask(request, run, wanted)
    if wanted.needs_name and request.POST.get("name", "") != run.name:
        return _ask(request, run, wanted, _("The name does not match."), status=422)
    try:
        wanted.do(run, signed_in(request))
    except ControlRefused as refusal:
        return _answer(request, run, refusal.message, level=messages.WARNING)
    except MoveLost:
        words = _("Somebody else has just changed this run; look at it again.")
        return _answer(request, run, words, level=messages.WARNING, status=409)
    except Run.DoesNotExist:
        words = _("Run #%(number)s has just been deleted.") % {"number": number}
        raise Http404(words) from None
    if wanted.slug == "delete":
        messages.success(request, _("Run #%(number)s is deleted.") % {"number": number})
        return redirect("runs:index")
    return _answer(request, run, str(wanted.done))


def _ask(
    request: HttpRequest, run: Run, command: Command, error: str = "", status: int = 200
) -> HttpResponse:
    """The question, as a dialog's content or as a page."""
    consequence = command.consequence(run) if command.consequence else ""
    context = {"run": run, "command": command, "consequence": consequence, "error": error}
    name = "runs/run/confirm.html" if wants_fragment(request) else "runs/run/confirm_page.html"
    return render(request, name, context, status=status)


def _answer(
    request: HttpRequest, run: Run, sentence: str, level: int = messages.SUCCESS, status: int = 200
) -> HttpResponse:
    """What came of it. Raises Http404 when somebody has deleted the run meanwhile."""
    if not wants_fragment(request):
        messages.add_message(request, level, sentence)
        return redirect("runs:detail", number=run.number)
    run = get_run_for_user(request.user, run.number)
    context = run_context(request, run, "")
    response = render(request, "runs/run/live.html", context, status=status)
    response["HX-Trigger"] = json.dumps({"temper:say": {"text": sentence}})
    return response
