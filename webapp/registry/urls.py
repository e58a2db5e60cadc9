"""Addresses of models."""

from __future__ import annotations

from django.urls import path

from webapp.registry.views import exports, index
from webapp.registry.views.download import download

app_name = "registry"
urlpatterns = [
    path("", index.index, name="index"),
    path("bases/", index.bases, name="bases"),
    path("exports/", index.exports, name="exports"),
    path("checkpoints/<int:pk>/export/", exports.new_export, name="new_export"),
    path("exports/<uuid:export_id>/", exports.export_page, name="export"),
    path("exports/<uuid:export_id>/progress/", exports.export_progress, name="export_progress"),
    path("exports/<uuid:export_id>/cancel/", exports.cancel, name="cancel"),
    path("exports/<uuid:export_id>/keep/", exports.keep, name="keep"),
    path("exports/<uuid:export_id>/use/", exports.use_as_base, name="use"),
    path("exports/<uuid:export_id>/delete/", exports.delete, name="delete"),
    path("exports/<uuid:export_id>/download.tar", download, name="download"),
]
