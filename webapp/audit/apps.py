"""Who did what: the append-only log."""

from __future__ import annotations

from importlib import import_module

from django.apps import AppConfig


class AuditConfig(AppConfig):
    """The audit log."""

    name = "webapp.audit"

    def ready(self) -> None:
        """Signing in and out is recorded whichever door was used; rows exist from now on."""
        import_module("webapp.audit.sign_in")
