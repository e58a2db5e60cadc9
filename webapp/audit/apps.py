"""Who did what: the append-only log."""

from __future__ import annotations

from django.apps import AppConfig
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed

from webapp.audit import sign_in


class AuditConfig(AppConfig):
    """The audit log."""

    name = "webapp.audit"

    def ready(self) -> None:
        """Signing in and out is recorded whichever door was used."""
        user_logged_in.connect(sign_in.signed_in, dispatch_uid="audit")
        user_logged_out.connect(sign_in.signed_out, dispatch_uid="audit")
        user_login_failed.connect(sign_in.failed, dispatch_uid="audit")
