"""Make and redeem one-time sign-in links.

Called by `manage.py login-link`, `manage.py up`, the page of accounts and the view behind a link.
Whoever makes a link, the audit log has it: it signs its holder in as somebody else.
"""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta

from django.db import transaction
from django.db.models import QuerySet
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


def is_open_login_link(token: str) -> bool:
    """Whether the link would sign somebody in now. Looking does not use it up."""
    return _open_links(token).exists()


def redeem_login_link(token: str) -> User | None:
    """The link's user, or None when it is unknown, used or too old. Guarded against two clicks."""
    if _open_links(token).update(used_at=timezone.now()) != 1:
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
        record(
            "member.add",
            actor=None,
            kind="member",
            key=owner.pk,
            label=str(owner),
            project=main,
            after={"role": str(Role.ADMIN)},
        )
    return owner


def _open_links(token: str) -> QuerySet[LoginLink]:
    """The link behind a token, when it is neither used nor too old and its user may sign in.

    The conditions are columns of the row itself: through a join the update would become one over a
    subquery, which PostgreSQL does not ask again after a second click has waited for the row.
    """
    return LoginLink.objects.filter(
        token_hash=_hash(token),
        used_at=None,
        expires_at__gt=timezone.now(),
        user__in=User.objects.filter(is_active=True),
    )


def _hash(token: str) -> str:
    """What is stored of a token."""
    return hashlib.sha256(token.encode()).hexdigest()
