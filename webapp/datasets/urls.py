"""Addresses of datasets."""

from __future__ import annotations

from django.urls import path

from webapp.datasets.views import imports, pages
from webapp.datasets.views.check import check
from webapp.datasets.views.upload import upload

app_name = "datasets"
urlpatterns = [
    path("", pages.index, name="index"),
    path("upload/", upload, name="upload"),
    path("<int:pk>/", pages.detail, name="detail"),
    path("versions/<uuid:version_id>/check/", check, name="check"),
    path("imports/<uuid:import_id>/", imports.import_page, name="import"),
    path("imports/<uuid:import_id>/progress/", imports.import_progress, name="import_progress"),
    path("imports/<uuid:import_id>/errors.csv", imports.import_errors, name="import_errors"),
]
