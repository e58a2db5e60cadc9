"""Evaluations in the admin: to look; the truth lies in the run directory."""

from __future__ import annotations

from django.contrib import admin

from webapp.evaluation.models import EvalRun
from webapp.runs.admin import ReadOnlyAdmin


@admin.register(EvalRun)
class EvalRunAdmin(ReadOnlyAdmin):
    """Held-out results."""

    list_display = ("run", "step", "title", "label", "attempt", "seconds", "superseded", "at")
    list_filter = ("label", "superseded")
