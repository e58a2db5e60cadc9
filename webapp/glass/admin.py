"""Steps under glass in the admin: to look."""

from __future__ import annotations

from django.contrib import admin

from webapp.glass.models import GlassStep
from webapp.runs.admin import ReadOnlyAdmin


@admin.register(GlassStep)
class GlassStepAdmin(ReadOnlyAdmin):
    """Who asked for what, and how it ended."""

    list_display = ("title", "kind", "state", "cause", "owner", "project", "worker", "created_at")
    list_select_related = ("owner", "project")
    list_filter = ("kind", "state")
    search_fields = ("title", "owner__username")
