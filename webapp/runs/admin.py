"""Runs in the admin: to look, and to mend what only the database knows.

Read-only wherever the truth lies in the run directory, and for every state: a hand that sets a
state by itself would bypass the table of moves.
"""

from __future__ import annotations

from django.contrib import admin
from unfold.admin import ModelAdmin

from webapp.audit.admin import AuditedAdmin
from webapp.runs.models import Attempt, Checkpoint, ControlRequest, Run, RunEvent, RunNotice


class ReadOnlyAdmin(ModelAdmin):  # type: ignore[misc]  # unfold has no types
    """Look, don't touch."""

    def has_add_permission(self, *_: object) -> bool:
        """Rows come from the control plane."""
        return False

    def has_change_permission(self, *_: object) -> bool:
        """Rows are a record."""
        return False

    def has_delete_permission(self, *_: object) -> bool:
        """`delete_run` deletes, with the directory."""
        return False


@admin.register(Run)
class RunAdmin(AuditedAdmin, ModelAdmin):  # type: ignore[misc]  # unfold has no types
    """Name and owner may be changed; all else is the control plane's or the directory's."""

    list_display = ("number", "name", "owner", "project", "state", "cause", "step", "lease_owner")
    list_filter = ("state", "project")
    search_fields = ("name", "number", "id")
    editable = ("name", "owner")

    def get_readonly_fields(self, *_: object) -> list[str]:
        """Every column that is not editable by hand."""
        names = [field.name for field in Run._meta.fields]
        return [name for name in names if name not in self.editable]

    def has_add_permission(self, *_: object) -> bool:
        """Runs are launched."""
        return False

    def has_delete_permission(self, *_: object) -> bool:
        """`delete_run` deletes, with the directory."""
        return False


@admin.register(RunEvent)
class RunEventAdmin(ReadOnlyAdmin):
    """The log of control."""

    list_display = ("at", "run", "kind", "from_state", "to_state", "actor", "cause")
    list_filter = ("kind", "to_state")


@admin.register(Attempt)
class AttemptAdmin(ReadOnlyAdmin):
    """Trainer processes."""

    list_display = ("run", "number", "worker", "device", "started_at", "outcome", "cause")


@admin.register(Checkpoint)
class CheckpointAdmin(ReadOnlyAdmin):
    """Saved states."""

    list_display = ("run", "step", "stage", "size_bytes", "is_best", "created_at", "removed_at")


@admin.register(ControlRequest)
class ControlRequestAdmin(ReadOnlyAdmin):
    """Wishes."""

    list_display = ("asked_at", "run", "command", "actor", "sent_at", "applied_at", "result")


@admin.register(RunNotice)
class RunNoticeAdmin(ReadOnlyAdmin):
    """Notices."""

    list_display = ("at", "run", "step", "level", "code", "message")
