"""One export: choose how, watch it, download it, keep it, remove it."""

from __future__ import annotations

from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from webapp.registry import services
from webapp.registry.access import (
    get_changeable_export,
    get_export_for_user,
    get_exportable_checkpoint,
    get_usable_export,
)
from webapp.registry.models import ModelExport
from webapp.registry.overview import export_choices, view_of
from webapp.registry.refusals import ExportRefused
from webapp.ui.fragments import wants_fragment
from webapp.ui.people import signed_in
from webapp.ui.wording import state_look


@require_http_methods(["GET", "POST"])
def new_export(request: HttpRequest, pk: int) -> HttpResponse:
    """GET asks in which type; POST asks a worker for it. The same wish again finds the same one."""
    user = signed_in(request)
    checkpoint = get_exportable_checkpoint(user, pk)
    error = services.problem_with(checkpoint, "bfloat16") if request.method == "GET" else ""
    if request.method == "POST":
        try:
            export = services.request_export(checkpoint, user, request.POST.get("dtype", ""))
            return redirect("registry:export", export_id=export.pk)
        except ExportRefused as refusal:
            error = refusal.message
    context = {"checkpoint": checkpoint, "choices": export_choices(checkpoint), "error": error}
    name = "registry/choose.html" if wants_fragment(request) else "registry/choose_page.html"
    return render(request, name, context, status=422 if request.method == "POST" else 200)


@require_safe
def export_page(request: HttpRequest, export_id: UUID) -> HttpResponse:
    """Where it is; once it is there, its files, its check and what can be done with it."""
    user = signed_in(request)
    view = view_of(user, get_export_for_user(user, export_id))
    return render(request, "registry/export.html", {"view": view})


@never_cache
@require_safe
def export_progress(request: HttpRequest, export_id: UUID) -> HttpResponse:
    """The part that moves while a worker has it."""
    user = signed_in(request)
    view = view_of(user, get_export_for_user(user, export_id))
    return render(request, "registry/export_body.html", {"view": view})


@require_POST
def cancel(request: HttpRequest, export_id: UUID) -> HttpResponse:
    """Nobody wants it any more."""
    user = signed_in(request)
    export = get_changeable_export(user, export_id)
    if services.cancel_export(export, user):
        messages.success(request, _("The export is cancelled."))
    else:
        words = _("The export is %(state)s; there is nothing to cancel.")
        messages.warning(request, words % {"state": state_look(export.state).label})
    return redirect("registry:export", export_id=export.pk)


@require_POST
def keep(request: HttpRequest, export_id: UUID) -> HttpResponse:
    """Let it stay, or let it expire after all."""
    export = get_changeable_export(signed_in(request), export_id)
    services.keep_export(export, keep=request.POST.get("keep") == "1")
    return redirect("registry:export", export_id=export.pk)


@require_POST
def use_as_base(request: HttpRequest, export_id: UUID) -> HttpResponse:
    """Keep it, since a run will need it, and open the launch page with it as the base model."""
    export = get_usable_export(signed_in(request), export_id)
    if not export.is_ready:
        words = _("This export is %(state)s.")
        raise Http404(words % {"state": state_look(export.state).label})
    services.keep_export(export)
    return redirect(f"{reverse('runs:launch')}?{urlencode({'model': export.folder.model})}")


@require_http_methods(["GET", "POST"])
def delete(request: HttpRequest, export_id: UUID) -> HttpResponse:
    """GET names the consequence, POST removes folder and row."""
    user = signed_in(request)
    export = get_changeable_export(user, export_id)
    if request.method == "GET":
        name = "registry/delete.html" if wants_fragment(request) else "registry/delete_page.html"
        return render(request, name, {"view": view_of(user, export)})
    try:
        services.delete_export(export, user)
    except ExportRefused as refusal:
        messages.warning(request, refusal.message)
        return redirect("registry:export", export_id=export.pk)
    except ModelExport.DoesNotExist:
        raise Http404(_("Somebody else has just deleted this export.")) from None
    messages.success(request, _("The export is deleted."))
    return redirect("registry:index")
