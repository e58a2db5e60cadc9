"""Make and redeem one-time sign-in links.

Called by `manage.py login-link`, `manage.py up`, the page of accounts and the view behind a link.
Whoever makes a link, the audit log has it: it signs its holder in as somebody else.
"""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta

from django.db import transaction
from django.urls import reverse
from django.utils import timezone

from webapp.accounts.models import LoginLink, Membership, Project, Role, User
from webapp.audit.record import record

LINK_LIFETIME = timedelta(minutes=15)
OWNER_NAME = "admin"


@transaction.atomic
def create_login_link(user: User, actor: User | None = None) -> str:
    """Path of a fresh link that signs `user` in, once, within 15 minutes.

    Without an actor a command made it, for somebody with a shell on the machine.
    """
    token = secrets.token_urlsafe(32)
    LoginLink.objects.filter(expires_at__lt=timezone.now()).delete()
    LoginLink.objects.create(
        user=user, token_hash=_hash(token), expires_at=timezone.now() + LINK_LIFETIME
    )
    record("user.link", actor=actor, kind="user", key=user.pk, label=str(user))
    return reverse("accounts:login_link", args=[token])


def redeem_login_link(token: str) -> User | None:
    """The link's user, or None when it is unknown, used or too old. Guarded against two clicks."""
    now = timezone.now()
    taken = LoginLink.objects.filter(
        token_hash=_hash(token), used_at=None, expires_at__gt=now, user__is_active=True
    ).update(used_at=now)
    if taken != 1:
        return None
    return LoginLink.objects.select_related("user").get(token_hash=_hash(token)).user


@transaction.atomic
def ensure_owner() -> User:
    """The first administrator, an admin of the main project.

    Made without a usable password, so a link is the way in.
    """
    owner = User.objects.filter(is_superuser=True, is_active=True).order_by("pk").first()
    if owner is None:
        owner = User.objects.create_superuser(OWNER_NAME)
        record("user.make", actor=None, kind="user", key=owner.pk, label=str(owner))
    main = Project.objects.main()
    admin = {"role": Role.ADMIN}
    _, is_new = Membership.objects.get_or_create(project=main, user=owner, defaults=admin)
    if is_new:
        about = {"kind": "member", "key": owner.pk, "label": str(owner), "project": main}
        record("member.add", actor=None, after={"role": str(Role.ADMIN)}, **about)
    return owner


def _hash(token: str) -> str:
    """What is stored of a token."""
    return hashlib.sha256(token.encode()).hexdigest()
