"""Rollout groups in the admin: read only, for support."""

from __future__ import annotations

from django.contrib import admin
from unfold.admin import ModelAdmin

from webapp.rollouts.models import RolloutGroup


@admin.register(RolloutGroup)
class RolloutGroupAdmin(ModelAdmin):  # type: ignore[misc]  # unfold has no types
    """Groups without their texts."""

    list_display = ("run", "kind", "step", "domain", "size", "passed", "superseded")
    list_select_related = ("run",)
    list_filter = ("kind", "superseded")
    search_fields = ("=run__number", "domain", "group_id")
    show_full_result_count = False

    def has_add_permission(self, *_: object) -> bool:
        """Nobody adds by hand."""
        return False

    def has_change_permission(self, *_: object) -> bool:
        """Nobody changes by hand."""
        return False
