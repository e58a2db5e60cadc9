"""Make checkpoints into plain model folders and download them: the same as on the models page.

Making one is asked for with the scope of a launch. To cancel or delete one of somebody else's, of a
run of somebody else's, an admin's token needs the scope `admin` besides.
"""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from ninja import Path, Router
from ninja.responses import Status

from webapp.api.auth import BearerToken, caller_of, lacks_scope, user_of
from webapp.api.checkpoints import find_checkpoint
from webapp.api.outputs.exports import ExportIn, ExportList, ExportOut, export_out
from webapp.api.params import RunNumber
from webapp.api.problems import Problem
from webapp.api.replay import answer_once, hash_body
from webapp.api.routes.launch import KEY_PARAMETER
from webapp.api.scopes import Scope
from webapp.registry import services
from webapp.registry.access import (
    exports_for,
    get_changeable_export,
    get_export_for_user,
    refuse_without_export,
)
from webapp.registry.models import ModelExport
from webapp.registry.ranges import Unsatisfiable
from webapp.registry.sending import find_archive, send_archive
from webapp.runs.access import get_run_for_user

router = Router(tags=["Exports"], auth=BearerToken(Scope.READ))
MOST_EXPORTS = 200
ExportId = Annotated[UUID, Path(description="Id of the export.")]
TAR = {"application/x-tar": {"schema": {"type": "string", "format": "binary"}}}
ARCHIVE_ANSWERS: dict[int, dict[str, Any]] = {
    200: {"description": "The whole archive, with its `ETag`.", "content": TAR},
    206: {"description": "The range that was asked for.", "content": TAR},
    304: {"description": "`If-None-Match` holds the archive's `ETag`."},
    410: {"$ref": "#/components/responses/Error410"},
    416: {"$ref": "#/components/responses/Error416"},
}
RANGE_PARAMETERS: list[dict[str, Any]] = [
    {
        "name": "Range",
        "in": "header",
        "required": False,
        "schema": {"type": "string"},
        "description": "One range of bytes, to go on with a download that broke.",
        "example": "bytes=1048576-",
    },
    {
        "name": "If-Range",
        "in": "header",
        "required": False,
        "schema": {"type": "string"},
        "description": "The `ETag` of the part that is there; of another archive comes the whole.",
    },
]


@router.get(
    "/runs/{number}/exports",
    response=ExportList,
    operation_id="list_exports",
    summary="List exports",
)
def list_exports(request: HttpRequest, number: RunNumber) -> ExportList:
    """The newest 200 exports of the run's checkpoints, in whatever state."""
    user = user_of(request)
    run = get_run_for_user(user, number)
    found = exports_for(user).filter(run=run).select_related("run__project", "owner")
    return ExportList(items=[export_out(row) for row in found.order_by("-pk")[:MOST_EXPORTS]])


@router.post(
    "/runs/{number}/exports",
    response={201: ExportOut},
    operation_id="make_export",
    summary="Export a checkpoint",
    openapi_extra={"parameters": [KEY_PARAMETER]},
    auth=BearerToken(Scope.LAUNCH),
)
def make_export(request: HttpRequest, number: RunNumber, body: ExportIn) -> HttpResponse:
    """Have a checkpoint made into a plain model folder, which transformers loads by itself. One
    that stands already, in the queue or ready, is the answer to the same wish."""
    user = user_of(request)
    run = get_run_for_user(user, number)
    refuse_without_export(user, run.project)

    def deed() -> ExportOut:
        checkpoint = find_checkpoint(run, body.checkpoint)
        return export_out(services.request_export(checkpoint, user, body.dtype))

    return answer_once(request, user, lambda: hash_body(request), deed)


@router.get(
    "/exports/{export_id}",
    response=ExportOut,
    operation_id="get_export",
    summary="Watch an export",
)
def get_export(request: HttpRequest, export_id: ExportId) -> ExportOut:
    """How far it is; once it is ready, its files with their hashes and what its check has shown."""
    return export_out(get_export_for_user(user_of(request), export_id))


@router.get(
    "/exports/{export_id}/download.tar",
    response={200: None},
    operation_id="download_export",
    summary="Download an export",
    openapi_extra={"responses": ARCHIVE_ANSWERS, "parameters": RANGE_PARAMETERS},
)
def download_export(
    request: HttpRequest, export_id: ExportId
) -> HttpResponse | StreamingHttpResponse:
    """The folder as one tar file, whose every byte is the same each time: a download that broke
    goes on with `Range`. One that is still made answers 409, one that is gone 410."""
    user = user_of(request)
    export = get_export_for_user(user, export_id)
    archive = find_archive(export)
    if archive is None and export.is_active:
        raise Problem(409, "The export is still being made; ask for its state until it is ready.")
    if archive is None:
        words = export.message or "Its folder is not there any more."
        raise Problem(410, f"The export is {export.state}: {words} Make it again.")
    try:
        return send_archive(request, user, export, archive)
    except Unsatisfiable:
        headers = {"Content-Range": f"bytes */{archive.size}"}
        raise Problem(416, f"The archive has {archive.size} bytes.", headers=headers) from None


@router.post(
    "/exports/{export_id}/cancel",
    response=ExportOut,
    operation_id="cancel_export",
    summary="Cancel an export",
    auth=BearerToken(Scope.CONTROL),
)
def cancel_export(request: HttpRequest, export_id: ExportId) -> ExportOut:
    """Nobody wants it any more; its process is killed. Only while it is made."""
    export = _changed(request, export_id)
    if not services.cancel_export(export, user_of(request)):
        raise Problem(409, f"The export is {export.state}; there is nothing to cancel.")
    return export_out(get_export_for_user(user_of(request), export_id))


@router.delete(
    "/exports/{export_id}",
    response={204: None},
    operation_id="delete_export",
    summary="Delete an export",
    auth=BearerToken(Scope.CONTROL),
)
def delete_export(request: HttpRequest, export_id: ExportId) -> Status[None]:
    """Remove the folder from the server; the checkpoint stays."""
    export = _changed(request, export_id)
    try:
        services.delete_export(export, user_of(request))
    except ModelExport.DoesNotExist:
        raise Problem(404, "Somebody else has just deleted this export.") from None
    return Status(204, None)


def _changed(request: HttpRequest, export_id: UUID) -> ModelExport:
    """The export, to change it. Raises Http404, PermissionDenied, or Problem 403 without the scope
    that the right of an admin needs."""
    caller = caller_of(request)
    export = get_changeable_export(caller.user, export_id)
    is_own = caller.user.pk in {export.owner_id, export.run.owner_id}
    if not is_own and Scope.ADMIN not in caller.token.scopes:
        raise lacks_scope(caller.token, Scope.ADMIN, f", which an export of {export.owner}'s needs")
    return export
