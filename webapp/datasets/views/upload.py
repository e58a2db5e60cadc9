"""Uploading a file: written to disk whole, then its columns are chosen."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from webapp.datasets.services import discard_upload, store_upload
from webapp.datasets.uploads import problem_with_file, problem_with_size
from webapp.ui.fragments import wants_fragment
from webapp.ui.people import signed_in


@require_http_methods(["GET", "POST"])
def upload(request: HttpRequest) -> HttpResponse:
    """GET shows the drop zone; POST takes the file. A script gets JSON, a browser a redirect."""
    if request.method == "GET":
        return render(request, "datasets/upload.html")
    file = request.FILES.get("file")
    if file is None:
        return _refuse(request, "Choose a file.")
    if problem := problem_with_size(file.size or 0):
        return _refuse(request, problem)
    job = store_upload(signed_in(request), file.name or "upload", file.chunks())
    if problem := problem_with_file(job):
        discard_upload(job)
        return _refuse(request, problem)
    address = reverse("datasets:import", args=[job.pk])
    return JsonResponse({"next": address}) if wants_fragment(request) else redirect(address)


def _refuse(request: HttpRequest, message: str) -> HttpResponse:
    """Say why, where the file was chosen."""
    if wants_fragment(request):
        return JsonResponse({"error": message}, status=422)
    return render(request, "datasets/upload.html", {"error": message}, status=422)
