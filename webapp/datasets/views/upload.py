"""Uploading a file: written to disk whole, then its columns are chosen."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from webapp.accounts.models import Project
from webapp.accounts.roles import Right
from webapp.datasets.access import find_upload_project, refuse_without_upload
from webapp.datasets.services import discard_upload, store_upload
from webapp.datasets.uploads import problem_with_file, problem_with_size
from webapp.ui.fragments import wants_fragment
from webapp.ui.people import signed_in
from webapp.ui.projects import current_project, standing_of


@require_http_methods(["GET", "POST"])
def upload(request: HttpRequest) -> HttpResponse:
    """GET shows the drop zone; POST takes the file. A script gets JSON, a browser a redirect."""
    user = signed_in(request)
    if not standing_of(request).where(Right.ADD_DATASETS):
        refuse_without_upload(user)
    if request.method == "GET":
        return _page(request)
    project = _project(request)
    if project is None:
        return _refuse(request, _("You may not add datasets to the project that was chosen."))
    file = request.FILES.get("file")
    if file is None:
        return _refuse(request, _("Choose a file."))
    if problem := problem_with_size(file.size or 0):
        return _refuse(request, problem)
    job = store_upload(user, file.name or "upload", file.chunks(), project)
    if problem := problem_with_file(job):
        discard_upload(job)
        return _refuse(request, problem)
    address = reverse("datasets:import", args=[job.pk])
    return JsonResponse({"next": address}) if wants_fragment(request) else redirect(address)


def _project(request: HttpRequest) -> Project | None:
    """The project that the form names, else that one looks at, else that was last uploaded to.

    None for a named one to which the person may not add: never to another audience without a word.
    """
    allowed = standing_of(request).where(Right.ADD_DATASETS)
    if slug := request.POST.get("project"):
        return next((project for project in allowed if project.slug == slug), None)
    current = current_project(request)
    return current if current in allowed else find_upload_project(signed_in(request), allowed)


def _page(request: HttpRequest, error: str = "", status: int = 200) -> HttpResponse:
    """The drop zone, with a choice where there are several projects."""
    context = {
        "error": error,
        "projects": standing_of(request).where(Right.ADD_DATASETS),
        "project": _project(request),
    }
    return render(request, "datasets/upload.html", context, status=status)


def _refuse(request: HttpRequest, message: str) -> HttpResponse:
    """Say why, where the file was chosen."""
    if wants_fragment(request):
        return JsonResponse({"error": message}, status=422)
    return _page(request, error=message, status=422)
