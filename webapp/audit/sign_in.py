"""Signing in, signing out and failing to, changing one's password, as entries.

Connected to the signals of Django and allauth in `apps`; these tell after the deed, so such an
entry has a transaction of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from allauth.account.signals import password_changed, password_set
from django.contrib.auth import get_user_model
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.db.models import Q
from django.dispatch import receiver

from webapp.audit.record import record


@receiver(user_logged_in, dispatch_uid="audit")
def signed_in(user: Any, **_: Any) -> None:
    """Somebody came in."""
    record("account.sign_in", actor=user, kind="user", key=user.pk, label=str(user))


@receiver(user_logged_out, dispatch_uid="audit")
def signed_out(user: Any, **_: Any) -> None:
    """Somebody left; a session without a user leaves nothing."""
    if user is not None:
        record("account.sign_out", actor=user, kind="user", key=user.pk, label=str(user))


@receiver(user_login_failed, dispatch_uid="audit")
def failed(credentials: Mapping[str, Any], **_: Any) -> None:
    """A wrong password for somebody who is here. What was typed is not kept: it may be a secret."""
    given = credentials.get("username") or credentials.get("login") or credentials.get("email")
    if not given or "\0" in str(given):
        return
    is_meant = Q(username__iexact=given) | Q(email__iexact=given)
    for known in get_user_model().objects.filter(is_meant).order_by("pk")[:1]:
        record("account.sign_in_failed", actor=None, kind="user", key=known.pk, label=str(known))


@receiver(password_changed, dispatch_uid="audit")
@receiver(password_set, dispatch_uid="audit")
def changed_password(user: Any, **_: Any) -> None:
    """Somebody chose another password, or a first one."""
    record("account.password", actor=user, kind="user", key=user.pk, label=str(user))
