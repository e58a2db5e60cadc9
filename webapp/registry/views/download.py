"""The download of an export: one tar file, resumable, streamed from the files themselves."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.utils.cache import get_conditional_response
from django.utils.http import content_disposition_header
from django.views.decorators.http import require_safe

from training_core.contract.exports import ExportedFile
from webapp.registry.access import get_export_for_user
from webapp.registry.archive import Archive, plan_archive, read_range
from webapp.registry.models import ModelExport
from webapp.registry.ranges import ByteRange, Unsatisfiable, wanted_range
from webapp.registry.services import note_download
from webapp.ui.people import signed_in

GONE = (
    "This export is no longer there: it expired, was cancelled or deleted. Make it again from the "
    "checkpoint's page.\n"
)


@require_safe
def download(request: HttpRequest, export_id: UUID) -> HttpResponse | StreamingHttpResponse:
    """The whole, a range of it (206), or nothing new (304)."""
    user = signed_in(request)
    export = get_export_for_user(user, export_id)
    archive = find_archive(export)
    if archive is None:
        if export.is_active:
            raise Http404("This export is still being made.")
        return HttpResponse(GONE, status=410, content_type="text/plain; charset=utf-8")
    try:
        part = wanted_range(
            request.headers.get("Range", ""),
            request.headers.get("If-Range", ""),
            archive.size,
            archive.etag,
        )
    except Unsatisfiable:
        refused = HttpResponse(status=416)
        refused["Content-Range"] = f"bytes */{archive.size}"
        return refused
    response: Any = _answer(request, archive, part)
    response["ETag"] = archive.etag
    response["Accept-Ranges"] = "bytes"
    response["Cache-Control"] = "private, no-transform"
    disposition = content_disposition_header(as_attachment=True, filename=f"{export.slug}.tar")
    response["Content-Disposition"] = disposition or "attachment"
    answer = get_conditional_response(request, etag=archive.etag, response=response)
    is_begun = answer is response and (part is None or part.start == 0)
    if is_begun and request.method == "GET":
        note_download(export, user)
    return answer or response


def find_archive(export: ModelExport) -> Archive | None:
    """The archive of a ready export; None when there is no folder."""
    if not export.is_ready or export.finished_at is None:
        return None
    files = [ExportedFile.model_validate(file) for file in export.files]
    folder = export.folder.model
    if not folder.is_dir():
        return None
    return plan_archive(folder, export.slug, files, int(export.finished_at.timestamp()))


def _answer(
    request: HttpRequest, archive: Archive, part: ByteRange | None
) -> HttpResponse | StreamingHttpResponse:
    """The body, or for HEAD its length alone."""
    start, stop = part or ByteRange(0, archive.size)
    response: HttpResponse | StreamingHttpResponse
    if request.method == "HEAD":
        response = HttpResponse()
    else:
        response = StreamingHttpResponse(read_range(archive, start, stop))
    response.status_code = 206 if part else 200
    if part:
        response["Content-Range"] = f"bytes {start}-{stop - 1}/{archive.size}"
    response["Content-Type"] = "application/x-tar"
    response["Content-Length"] = str(stop - start)
    return response
