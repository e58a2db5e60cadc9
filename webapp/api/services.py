"""Make, find and revoke tokens.

Called by the token page, `manage.py api-token` and the bearer authentication. A secret has 256
random bits, so a plain SHA-256 of it is enough: nobody can try them all.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from webapp.accounts.models import User
from webapp.api.models import ApiToken
from webapp.api.scopes import Scope
from webapp.audit.record import record

MARK = "temper_"
"""Every secret begins with it, so that scanners for leaked secrets can know one."""
PREFIX_CHARS = len(MARK) + 6
LONGEST_SECRET = 100
DEFAULT_DAYS, MOST_DAYS = 90, 365
TOUCH_EVERY = timedelta(minutes=1)


@transaction.atomic
def create_token(
    user: User,
    name: str,
    scopes: Iterable[Scope],
    days: int = DEFAULT_DAYS,
    actor: User | None = None,
) -> tuple[ApiToken, str]:
    """(the row, the secret). The secret is shown once and stored nowhere.

    `actor` is who asked for it: None is the console of the machine.

    Raises ValueError for a lifetime outside 1 to 365 days or without any scope.
    """
    chosen = set(scopes)
    if not 1 <= days <= MOST_DAYS:
        raise ValueError(f"A token lives 1 to {MOST_DAYS} days, not {days}.")
    if not chosen:
        raise ValueError("A token without a scope can do nothing; choose at least one.")
    secret = MARK + secrets.token_urlsafe(32)
    token = ApiToken.objects.create(
        user=user,
        name=name,
        prefix=secret[:PREFIX_CHARS],
        token_hash=hash_secret(secret),
        scopes=[scope.value for scope in Scope if scope in chosen],
        expires_at=timezone.now() + timedelta(days=days),
    )
    _note("token.make", token, actor, {"scopes": token.scopes, "days": days})
    return token, secret


def find_token(secret: str) -> ApiToken | None:
    """The token of a secret, whatever its state, or None."""
    if not secret.startswith(MARK) or len(secret) > LONGEST_SECRET:
        return None
    found = ApiToken.objects.filter(token_hash=hash_secret(secret))
    return found.select_related("user").first()


def note_use(token: ApiToken, address: str | None) -> None:
    """Remember when and from where it was used; at most one write a minute."""
    now = timezone.now()
    ApiToken.objects.filter(
        Q(last_used_at=None) | Q(last_used_at__lt=now - TOUCH_EVERY), pk=token.pk
    ).update(last_used_at=now, last_used_from=address)


@transaction.atomic
def revoke_token(token: ApiToken, actor: User | None = None) -> None:
    """End it now; the row stays as a record. Doing it twice changes nothing."""
    if ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=timezone.now()):
        _note("token.revoke", token, actor, {})


def _note(action: str, token: ApiToken, actor: User | None, after: dict[str, Any]) -> None:
    """Its entry in the audit log, which holds the beginning of the secret and no more."""
    label = f"{token.name} ({token.prefix}…)"
    after = {"for": token.user.get_username(), **after}
    record(action, actor=actor, kind="token", key=token.pk, label=label, after=after)


def hash_secret(secret: str) -> str:
    """What is stored of a secret."""
    return hashlib.sha256(secret.encode("utf-8", errors="surrogateescape")).hexdigest()
