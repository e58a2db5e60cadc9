"""One import: choose columns, watch it, read what is wrong row by row."""

from __future__ import annotations

import csv
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import get_language
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from webapp.datasets.access import (
    get_import_for_user,
    get_own_import,
    may_replace,
    why_not_replace,
)
from webapp.datasets.forms import MappingForm
from webapp.datasets.models import DatasetImport
from webapp.datasets.services import start_import
from webapp.metrics.export import plain_cell
from webapp.ui.people import signed_in

State = DatasetImport.State


@require_http_methods(["GET", "POST"])
def import_page(request: HttpRequest, import_id: UUID) -> HttpResponse:
    """GET shows where the import is; POST queues it under the chosen columns, or previews them."""
    user = signed_in(request)
    if request.method == "GET":
        job = get_import_for_user(user, import_id)
        wants_columns = job.state == State.UPLOADED or "columns" in request.GET
        if job.is_active or not wants_columns or job.state == State.DONE:
            return render(request, "datasets/import.html", {"job": job})
        return render(request, "datasets/mapping.html", {"form": MappingForm.opening(job)})
    job = get_own_import(user, import_id)
    form = MappingForm.from_post(job, request.POST.dict())
    if "name" not in form.errors and not may_replace(user, form.name, job.project):
        form.errors["name"] = why_not_replace(job.project)
    if request.POST.get("action") == "preview":
        return render(request, "datasets/mapping.html", {"form": form})
    if not form.is_valid:
        return render(request, "datasets/mapping.html", {"form": form}, status=422)
    start_import(job, form.name, form.mapping, form.delimiter, user)
    return redirect("datasets:import", import_id=job.pk)


@never_cache
@require_safe
def import_progress(request: HttpRequest, import_id: UUID) -> HttpResponse:
    """The fragment that moves while a worker has it."""
    job = get_import_for_user(signed_in(request), import_id)
    return render(request, "datasets/import_progress.html", {"job": job})


@require_safe
def import_errors(request: HttpRequest, import_id: UUID) -> HttpResponse:
    """The errors as a CSV file."""
    job = get_import_for_user(signed_in(request), import_id)
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = 'attachment; filename="import-errors.csv"'
    if get_language() != "en":
        response.write("\ufeff")  # else spreadsheets take it for another encoding
    writer = csv.writer(response)
    writer.writerow(["row", "column", "code", "message"])
    for error in job.row_errors:
        texts = (plain_cell(error[name]) for name in ("column", "code", "message"))
        writer.writerow([error["row"], *texts])
    return response
