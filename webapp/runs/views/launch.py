"""The launch page: presets, the form, its YAML twin, and what a launch will do."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from webapp.accounts.models import User
from webapp.runs.editor import Editor
from webapp.runs.origins import find_origin, launch_from, new_key
from webapp.runs.preset_cards import preset_cards
from webapp.runs.refusals import LaunchRefused
from webapp.ui.fragments import wants_fragment


@require_http_methods(["GET", "POST"])
def launch(request: HttpRequest) -> HttpResponse:
    """GET shows the form; POST launches, or changes the form's structure, or turns to YAML."""
    if request.method == "GET":
        origin = find_origin(request.user, request.GET.dict())
        return render_page(request, Editor.opening(origin))
    editor = Editor.from_post(request.user, request.POST.dict())
    action = request.POST.get("action", "launch")
    if action != "launch":
        editor.do(action)
        return render_editor(request, editor)
    return _launch(request, editor)


@require_http_methods(["POST"])
def launch_preset(request: HttpRequest) -> HttpResponse:
    """Launch a preset as it is: the button on its card, which needs no script."""
    origin = find_origin(request.user, {"preset": request.POST.get("preset", "") or "-"})
    editor = Editor.opening(origin)
    editor.key = request.POST.get("idempotency_key", "")
    return _launch(request, editor)


@require_http_methods(["POST"])
def check(request: HttpRequest) -> HttpResponse:
    """The preflight panel for what stands in the form now."""
    editor = Editor.from_post(request.user, request.POST.dict())
    return render(request, "runs/launch/preflight.html", {"editor": editor})


def _launch(request: HttpRequest, editor: Editor) -> HttpResponse:
    """Launch what the editor holds, or show the page with what is wrong."""
    spec = editor.launchable_spec()
    if spec is None or not isinstance(request.user, User):
        return render_page(request, editor, status=422)
    try:
        run = launch_from(editor.origin, request.user, spec, editor.key)
    except LaunchRefused as refusal:
        editor.refuse(refusal)
        return render_page(request, editor, status=422)
    return redirect("runs:detail", number=run.number)


def render_page(request: HttpRequest, editor: Editor, status: int = 200) -> HttpResponse:
    """The whole page."""
    context: dict[str, Any] = {"editor": editor, "preset_key": new_key()}
    if editor.origin.checkpoint is None and editor.origin.parent is None:
        context["cards"] = preset_cards()
    return render(request, "runs/launch/page.html", context, status=status)


def render_editor(request: HttpRequest, editor: Editor) -> HttpResponse:
    """The editor alone for a script's request, else the page."""
    if not wants_fragment(request):
        return render_page(request, editor)
    response = render(request, "runs/launch/editor_fragment.html", {"editor": editor})
    if editor.shown:
        response["HX-Trigger-After-Swap"] = editor.focus_event()
    return response
