"""What somebody with a staff account changes by hand under Admin goes into the audit log too.

A parent of the admin classes whose rows may be changed there. Django calls these three in the
transaction of the change itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from django.contrib.admin.models import LogEntry
from django.http import HttpRequest

from webapp.audit.record import record


class AuditedAdmin:
    """Put before unfold's ModelAdmin."""

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """Something was added."""
        _note("admin.add", request, obj, message)
        return super().log_addition(request, obj, message)  # type: ignore[misc]

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """Something was changed, a password included."""
        _note("admin.change", request, obj, message)
        return super().log_change(request, obj, message)  # type: ignore[misc]

    def log_deletions(self, request: HttpRequest, queryset: Iterable[Any]) -> Any:
        """Some rows are deleted."""
        for obj in queryset:
            _note("admin.delete", request, obj, "")
        return super().log_deletions(request, queryset)  # type: ignore[misc]


def _note(action: str, request: HttpRequest, obj: Any, message: Any) -> None:
    """An entry about one row; Django's message names the fields and not what they held."""
    text = message if isinstance(message, str) else json.dumps(message)
    words = LogEntry(change_message=text).get_change_message()
    kind = obj._meta.model_name
    record(
        action,
        actor=request.user,
        kind=kind,
        key=obj.pk,
        label=str(obj),
        project=obj if kind == "project" else getattr(obj, "project", None),
        after={"what": str(words)} if words else {},
    )
