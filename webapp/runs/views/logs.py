"""The logs tab: the trainer's console, its tail live, and a search through all of it."""

from __future__ import annotations

import re
from pathlib import Path

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from webapp.runs.access import get_run_for_user
from webapp.runs.console import read_from, read_tail, search
from webapp.runs.models import Run
from webapp.runs.views.detail import run_context


@require_safe
def logs(request: HttpRequest, number: int) -> HttpResponse:
    """The tail of one attempt's console, or the lines that a search finds."""
    run = get_run_for_user(request.user, number)
    attempt = _attempt(request, run)
    words = request.GET.get("q", "").strip()[:200]
    path = _console(run, attempt)
    hits, hit_count = search(path, words) if words else ([], 0)
    context = run_context(
        request,
        run,
        "logs",
        attempts=list(run.attempts.order_by("-number")),
        attempt=attempt,
        piece=None if words else read_tail(path),
        words=words,
        hits=hits,
        hit_count=hit_count,
    )
    return render(request, "runs/run/logs.html", context)


@never_cache
@require_safe
def log_piece(request: HttpRequest, number: int) -> JsonResponse:
    """What the console says after a byte offset, as safe HTML."""
    run = get_run_for_user(request.user, number)
    offset = _whole(request.GET.get("offset", "0"), "offset")
    piece = read_from(_console(run, _attempt(request, run)), offset)
    return JsonResponse(piece._asdict())


def _attempt(request: HttpRequest, run: Run) -> int:
    """The attempt that is asked for; the newest by default. Raises Http404."""
    attempt = _whole(request.GET.get("attempt") or str(run.attempt), "attempt")
    if attempt > run.attempt:
        words = _("Run #%(number)s has no attempt %(attempt)s.")
        raise Http404(words % {"number": run.number, "attempt": attempt})
    return attempt


def _whole(text: str, what: str) -> int:
    """A number from the address. Raises Http404 for anything else."""
    if not re.fullmatch(r"[0-9]{1,15}", text):
        raise Http404(_("%(what)s must be a whole number.") % {"what": what})
    return int(text)


def _console(run: Run, attempt: int) -> Path:
    """The file."""
    return run.run_dir.console_file(attempt)
