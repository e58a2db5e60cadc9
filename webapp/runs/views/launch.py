"""The launch page: presets, the form, its YAML twin, and what a launch will do."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from webapp.accounts.models import Project
from webapp.accounts.roles import Right
from webapp.runs.access import why_no_launch
from webapp.runs.copy_as import copy_texts
from webapp.runs.editor import Editor
from webapp.runs.origins import find_origin, launch_from, new_key
from webapp.runs.preset_cards import preset_cards
from webapp.runs.refusals import LaunchRefused
from webapp.ui.fragments import wants_fragment
from webapp.ui.people import signed_in
from webapp.ui.projects import current_project, standing_of


@require_http_methods(["GET", "POST"])
def launch(request: HttpRequest) -> HttpResponse:
    """GET shows the form; POST launches, or changes the form's structure, or turns to YAML."""
    user, projects = signed_in(request), _projects(request)
    if request.method == "GET":
        origin = find_origin(user, request.GET.dict())
        editor = Editor.opening(user, origin, current_project(request), projects)
        return render_page(request, editor)
    editor = Editor.from_post(user, request.POST.dict(), projects)
    action = request.POST.get("action", "launch")
    if action != "launch":
        editor.do(action)
        return render_editor(request, editor)
    return _launch(request, editor)


@require_http_methods(["POST"])
def launch_preset(request: HttpRequest) -> HttpResponse:
    """Launch a preset as it is: the button on its card, which needs no script."""
    user, projects = signed_in(request), _projects(request)
    origin = find_origin(user, {"preset": request.POST.get("preset", "") or "-"})
    editor = Editor.opening(user, origin, current_project(request), projects)
    editor.key = request.POST.get("idempotency_key", "")
    if editor.is_guess:
        editor.refusal = _("Choose the project that the run belongs to, then launch.")
        return render_page(request, editor, status=422)
    return _launch(request, editor)


@require_http_methods(["POST"])
def check(request: HttpRequest) -> HttpResponse:
    """The preflight panel for what stands in the form now."""
    editor = Editor.from_post(signed_in(request), request.POST.dict(), _projects(request))
    return render(request, "runs/launch/preflight.html", {"editor": editor})


@require_http_methods(["POST"])
def copy_as(request: HttpRequest) -> HttpResponse:
    """What stands in the form as YAML, command and Python: in a dialog, or as a page."""
    editor = Editor.from_post(signed_in(request), request.POST.dict(), _projects(request))
    texts = None
    if editor.form is not None:
        texts = copy_texts(editor.origin, editor.whole_document, editor.project)
    page = "copy_as.html" if wants_fragment(request) else "copy_as_page.html"
    return render(request, f"runs/launch/{page}", {"editor": editor, "texts": texts})


def _projects(request: HttpRequest) -> list[Project]:
    """Where the person may launch. Raises PermissionDenied, with who can, when that is nowhere."""
    projects = standing_of(request).where(Right.LAUNCH)
    if not projects:
        raise PermissionDenied(why_no_launch(signed_in(request)))
    return projects


def _launch(request: HttpRequest, editor: Editor) -> HttpResponse:
    """Launch what the editor holds, or show the page with what is wrong."""
    spec = editor.launchable_spec()
    if spec is None:
        return render_page(request, editor, status=422)
    try:
        run = launch_from(editor.origin, signed_in(request), spec, editor.key, editor.project)
    except LaunchRefused as refusal:
        editor.refuse(refusal)
        return render_page(request, editor, status=422)
    return redirect("runs:detail", number=run.number)


def render_page(request: HttpRequest, editor: Editor, status: int = 200) -> HttpResponse:
    """The whole page."""
    context: dict[str, Any] = {"editor": editor, "preset_key": new_key()}
    if editor.origin.checkpoint is None and editor.origin.parent is None:
        context["cards"] = preset_cards(signed_in(request))
    return render(request, "runs/launch/page.html", context, status=status)


def render_editor(request: HttpRequest, editor: Editor) -> HttpResponse:
    """The editor alone for a script's request, else the page."""
    if not wants_fragment(request):
        return render_page(request, editor)
    response = render(request, "runs/launch/editor_fragment.html", {"editor": editor})
    if editor.shown:
        response["HX-Trigger-After-Swap"] = editor.focus_event()
    return response
