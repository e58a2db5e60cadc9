"""The download of an export: one tar file, resumable, streamed from the files themselves."""

from __future__ import annotations

from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe

from webapp.registry.access import get_export_for_user
from webapp.registry.ranges import Unsatisfiable
from webapp.registry.sending import find_archive, send_archive
from webapp.ui.people import signed_in

GONE = gettext_lazy(
    "This export is no longer there: it expired, was cancelled or deleted. Make it again from the "
    "checkpoint's page."
)


@require_safe
def download(request: HttpRequest, export_id: UUID) -> HttpResponse | StreamingHttpResponse:
    """The whole, a range of it (206), or nothing new (304)."""
    user = signed_in(request)
    export = get_export_for_user(user, export_id)
    archive = find_archive(export)
    if archive is None:
        if export.is_active:
            raise Http404(_("This export is still being made."))
        return HttpResponse(f"{GONE}\n", status=410, content_type="text/plain; charset=utf-8")
    try:
        return send_archive(request, user, export, archive)
    except Unsatisfiable:
        refused = HttpResponse(status=416)
        refused["Content-Range"] = f"bytes */{archive.size}"
        return refused
