"""An export's archive as an HTTP answer: whole, a range of it, or nothing new.

Called by the page's download and by the one of `/api/v1`, so that both speak the same HTTP.
"""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.utils.cache import get_conditional_response
from django.utils.http import content_disposition_header

from training_core.contract.exports import ExportedFile
from webapp.accounts.models import User
from webapp.registry.archive import Archive, plan_archive, read_range
from webapp.registry.models import ModelExport
from webapp.registry.ranges import ByteRange, wanted_range
from webapp.registry.services import note_download

Answer = HttpResponse | StreamingHttpResponse


def find_archive(export: ModelExport) -> Archive | None:
    """The archive of a ready export; None when there is no folder."""
    if not export.is_ready or export.finished_at is None:
        return None
    files = [ExportedFile.model_validate(file) for file in export.files]
    folder = export.folder.model
    if not folder.is_dir():
        return None
    return plan_archive(folder, export.slug, files, int(export.finished_at.timestamp()))


def send_archive(
    request: HttpRequest, user: User, export: ModelExport, archive: Archive
) -> HttpResponse | StreamingHttpResponse:
    """200, 206 or 304; who takes it stands in the audit log. Raises Unsatisfiable."""
    part = wanted_range(
        request.headers.get("Range", ""),
        request.headers.get("If-Range", ""),
        archive.size,
        archive.etag,
    )
    response: Any = _body(request, archive, part)
    response["ETag"] = archive.etag
    response["Accept-Ranges"] = "bytes"
    response["Cache-Control"] = "private, no-transform"
    disposition = content_disposition_header(as_attachment=True, filename=f"{export.slug}.tar")
    response["Content-Disposition"] = disposition or "attachment"
    answer = get_conditional_response(request, etag=archive.etag, response=response)
    if answer is response and request.method == "GET":
        note_download(export, user, is_begun=part is None or part.start == 0)
    return answer or response


def _body(request: HttpRequest, archive: Archive, part: ByteRange | None) -> Answer:
    """The body, or for HEAD its length alone."""
    start, stop = part or ByteRange(0, archive.size)
    response: Answer
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
