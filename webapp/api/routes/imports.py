"""Upload files and import them as dataset versions."""

from __future__ import annotations

import hashlib
from typing import Annotated
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from ninja import File, Form, Path, Router
from ninja.files import UploadedFile

from training_core.contract.field_errors import FieldError
from webapp.accounts.models import Project, User
from webapp.api.auth import BearerToken, user_of
from webapp.api.outputs.datasets import ImportOut, StartImport, import_out
from webapp.api.params import Text
from webapp.api.problems import Problem, bad_fields
from webapp.api.projects import upload_project
from webapp.api.replay import answer_once
from webapp.api.routes.launch import KEY_PARAMETER
from webapp.api.scopes import Scope
from webapp.datasets.access import (
    get_import_for_user,
    get_own_import,
    may_replace,
    refuse_without_upload,
    why_not_replace,
)
from webapp.datasets.forms import MappingForm
from webapp.datasets.models import DatasetImport
from webapp.datasets.services import discard_upload, start_import, store_upload
from webapp.datasets.uploads import problem_with_file, problem_with_size

router = Router(tags=["Datasets"], auth=BearerToken(Scope.DATA))
ImportId = Annotated[UUID, Path(description="Id of the import.")]


@router.post(
    "/imports",
    response={201: ImportOut},
    operation_id="upload_file",
    summary="Upload a file",
    openapi_extra={"parameters": [KEY_PARAMETER]},
)
def upload_file(
    request: HttpRequest,
    file: Annotated[UploadedFile, File(description="CSV or JSONL with a header or field names.")],
    name: Annotated[Text, Form("", description="Dataset; the file's name when left out.")] = "",
    project: Annotated[
        Text, Form("", description="Slug of its project; that of your last upload when left out.")
    ] = "",
    prompt: Annotated[
        Text, Form("", description="Column of the prompt; guessed when left out.")
    ] = "",
    answer: Annotated[
        Text, Form("", description="Column of the answer; guessed when left out.")
    ] = "",
    demonstration: Annotated[Text, Form("", description="Column of a worked reply.")] = "",
    held_out_percent: Annotated[int, Form(description="Share kept for evaluation, 1 to 50.")] = 20,
    delimiter: Annotated[
        Text, Form("", description="Of a CSV file; found out when left out.")
    ] = "",
    start: Annotated[bool, Form(description="Import at once; else wait for the columns.")] = True,
) -> HttpResponse:
    """Store a file of up to 4 GB and import it in the background. Where the columns cannot be
    guessed and are not given, nothing is kept and the error lists them."""
    user = user_of(request)
    refuse_without_upload(user)
    wanted = {
        "name": name,
        "project": project,
        "prompt": prompt,
        "answer": answer,
        "demonstration": demonstration,
        "held_out_percent": str(held_out_percent),
        "delimiter": delimiter,
    }

    def deed() -> ImportOut:
        job = _store(user, file, upload_project(user, project))
        if not start:
            return import_out(job)
        try:
            return import_out(_start(user, job, _filled(job, wanted)))
        except Problem:
            discard_upload(job)
            raise

    return answer_once(request, user, lambda: _hash(file, wanted, start=start), deed)


@router.get(
    "/imports/{import_id}",
    response=ImportOut,
    operation_id="get_import",
    summary="Watch an import",
    auth=BearerToken(Scope.READ),
)
def get_import(request: HttpRequest, import_id: ImportId) -> ImportOut:
    """How far it is, what is wrong with which rows, and the version that it became."""
    return import_out(get_import_for_user(user_of(request), import_id))


@router.post(
    "/imports/{import_id}/start",
    response=ImportOut,
    operation_id="start_import",
    summary="Choose columns and import",
)
def begin_import(request: HttpRequest, import_id: ImportId, body: StartImport) -> ImportOut:
    """Queue an uploaded or rejected file under these columns; a queued one stays as it is."""
    user = user_of(request)
    job = get_own_import(user, import_id)
    return import_out(_start(user, job, body.posted()))


def _store(user: User, file: UploadedFile, project: Project) -> DatasetImport:
    """The file on disk with its import. Raises Problem 422."""
    if problem := problem_with_size(file.size or 0):
        raise bad_fields([FieldError("file", problem)])
    job = store_upload(user, file.name or "upload", file.chunks(), project)
    if problem := problem_with_file(job):
        discard_upload(job)
        raise bad_fields([FieldError("file", problem)])
    return job


def _filled(job: DatasetImport, wanted: dict[str, str]) -> dict[str, str]:
    """What was sent, with guesses where something was left out."""
    opening = MappingForm.opening(job)
    guess = {
        "name": opening.name,
        "prompt": opening.mapping.prompt,
        "answer": opening.mapping.answer,
    }
    return {**wanted, **{key: wanted[key] or guess[key] for key in guess}}


def _start(user: User, job: DatasetImport, posted: dict[str, str]) -> DatasetImport:
    """Queue it, judged by the mapping form. Raises Problem 422 with the form's words."""
    form = MappingForm.from_post(job, posted)
    if "name" not in form.errors and not may_replace(user, form.name, job.project):
        form.errors["name"] = why_not_replace(job.project)
    if form.file_error:
        raise bad_fields([FieldError("file", form.file_error)])
    if form.errors:
        errors = [FieldError(field, words) for field, words in form.errors.items()]
        problem = bad_fields(errors)
        problem.detail += f" The file has the columns {', '.join(form.columns[:50])}."
        raise problem
    start_import(job, form.name, form.mapping, form.delimiter, user)
    job.refresh_from_db()
    return job


def _hash(file: UploadedFile, wanted: dict[str, str], *, start: bool) -> str:
    """What stands for the body: a multipart body differs each time it is written."""
    digest = hashlib.sha256(repr((file.name, sorted(wanted.items()), start)).encode())
    for chunk in file.chunks():
        digest.update(chunk)
    file.seek(0)
    return digest.hexdigest()
