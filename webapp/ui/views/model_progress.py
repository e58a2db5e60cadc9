"""The bar that shows the built-in model's preparation until it is ready."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache

from webapp.ui.model_progress import read_model_progress


@never_cache
def model_progress(request: HttpRequest) -> HttpResponse:
    """The fragment; it asks for itself again until the model is ready, and then is empty."""
    return render(request, "ui/model_progress.html", {"progress": read_model_progress()})
