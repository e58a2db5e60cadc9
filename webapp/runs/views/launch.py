"""The launch page: presets, the form, its YAML twin, and what a launch will do."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from training_core.contract.presets import PRESETS
from webapp.accounts.models import User
from webapp.runs.access import refuse_without_launch
from webapp.runs.copy_as import copy_texts
from webapp.runs.editor import Editor
from webapp.runs.origins import find_origin, launch_from, new_key
from webapp.runs.refusals import LaunchRefused
from webapp.ui.fragments import wants_fragment
from webapp.ui.people import signed_in
from webapp.ui.projects import current_project


@require_http_methods(["GET", "POST"])
def launch(request: HttpRequest) -> HttpResponse:
    """GET shows the form; POST launches, or changes the form's structure, or turns to YAML."""
    refuse_without_launch(signed_in(request))
    if request.method == "GET":
        origin = find_origin(request.user, request.GET.dict())
        return render_page(request, Editor.opening(request.user, origin, current_project(request)))
    editor = Editor.from_post(request.user, request.POST.dict())
    action = request.POST.get("action", "launch")
    if action != "launch":
        editor.do(action)
        return render_editor(request, editor)
    return _launch(request, editor)


@require_http_methods(["POST"])
def launch_preset(request: HttpRequest) -> HttpResponse:
    """Launch a preset as it is: the button on its card, which needs no script."""
    refuse_without_launch(signed_in(request))
    origin = find_origin(request.user, {"preset": request.POST.get("preset", "") or "-"})
    editor = Editor.opening(request.user, origin, current_project(request))
    editor.key = request.POST.get("idempotency_key", "")
    return _launch(request, editor)


@require_http_methods(["POST"])
def check(request: HttpRequest) -> HttpResponse:
    """The preflight panel for what stands in the form now."""
    refuse_without_launch(signed_in(request))
    editor = Editor.from_post(request.user, request.POST.dict())
    return render(request, "runs/launch/preflight.html", {"editor": editor})


@require_http_methods(["POST"])
def copy_as(request: HttpRequest) -> HttpResponse:
    """What stands in the form as YAML, command and Python: in a dialog, or as a page."""
    refuse_without_launch(signed_in(request))
    editor = Editor.from_post(request.user, request.POST.dict())
    texts = None
    if editor.form is not None:
        texts = copy_texts(editor.origin, editor.whole_document, editor.project)
    page = "copy_as.html" if wants_fragment(request) else "copy_as_page.html"
    return render(request, f"runs/launch/{page}", {"editor": editor, "texts": texts})


def _launch(request: HttpRequest, editor: Editor) -> HttpResponse:
    """Launch what the editor holds, or show the page with what is wrong."""
    spec = editor.launchable_spec()
    if spec is None or not isinstance(request.user, User):
        return render_page(request, editor, status=422)
    try:
        run = launch_from(editor.origin, request.user, spec, editor.key, editor.project)
    except LaunchRefused as refusal:
        editor.refuse(refusal)
        return render_page(request, editor, status=422)
    return redirect("runs:detail", number=run.number)


def render_page(request: HttpRequest, editor: Editor, status: int = 200) -> HttpResponse:
    """The whole page."""
    context: dict[str, Any] = {"editor": editor, "presets": PRESETS, "preset_key": new_key()}
    return render(request, "runs/launch/page.html", context, status=status)


def render_editor(request: HttpRequest, editor: Editor) -> HttpResponse:
    """The editor alone for a script's request, else the page."""
    if not wants_fragment(request):
        return render_page(request, editor)
    response = render(request, "runs/launch/editor_fragment.html", {"editor": editor})
    if editor.shown:
        response["HX-Trigger-After-Swap"] = editor.focus_event()
    return response
