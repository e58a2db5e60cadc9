"""Datasets in the admin: for support. Versions and records are frozen there as everywhere."""

from __future__ import annotations

from django.contrib import admin
from unfold.admin import ModelAdmin

from webapp.audit.admin import AuditedAdmin
from webapp.datasets.models import Dataset, DatasetImport, DatasetVersion


class FrozenAdmin(AuditedAdmin, ModelAdmin):  # type: ignore[misc]  # unfold has no types
    """Rows that only the program writes: shown, and deleted at most."""

    def has_add_permission(self, *_: object) -> bool:
        """Nobody adds by hand."""
        return False

    def has_change_permission(self, *_: object) -> bool:
        """Nobody changes by hand."""
        return False


@admin.register(Dataset)
class DatasetAdmin(AuditedAdmin, ModelAdmin):  # type: ignore[misc]  # unfold has no types
    """Names and owners."""

    list_display = ("name", "project", "owner", "created_at")
    list_select_related = ("owner", "project")
    list_filter = ("project",)
    search_fields = ("name", "owner__username")
    autocomplete_fields = ("owner",)


@admin.register(DatasetVersion)
class DatasetVersionAdmin(FrozenAdmin):
    """Frozen versions."""

    list_display = ("dataset", "number", "state", "record_count", "held_out_count", "created_at")
    list_select_related = ("dataset",)
    list_filter = ("state",)
    search_fields = ("dataset__name", "content_hash")


@admin.register(DatasetImport)
class DatasetImportAdmin(FrozenAdmin):
    """Imports with what was wrong."""

    list_display = ("file_name", "state", "row_count", "error_count", "owner", "project")
    list_select_related = ("owner", "project")
    list_filter = ("state", "project")
    search_fields = ("file_name", "name", "owner__username")
