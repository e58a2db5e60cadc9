"""Exports in the admin: to look; `services` removes them, with their folders."""

from __future__ import annotations

from django.contrib import admin

from webapp.registry.models import ModelExport
from webapp.runs.admin import ReadOnlyAdmin


@admin.register(ModelExport)
class ModelExportAdmin(ReadOnlyAdmin):
    """Checkpoints that were made into folders."""

    list_display = ("run", "step", "dtype", "state", "owner", "size_bytes", "created_at")
    list_filter = ("state", "dtype")
