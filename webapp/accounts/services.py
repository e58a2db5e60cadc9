"""Make and redeem one-time sign-in links.

Called by `manage.py login-link`, `manage.py up` and the view behind a link.
"""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta

from django.db.models import QuerySet
from django.urls import reverse
from django.utils import timezone

from webapp.accounts.models import LoginLink, Membership, Project, Role, User

LINK_LIFETIME = timedelta(minutes=15)
OWNER_NAME = "admin"


def create_login_link(user: User) -> str:
    """Path of a fresh link that signs `user` in, once, within 15 minutes."""
    token = secrets.token_urlsafe(32)
    LoginLink.objects.filter(expires_at__lt=timezone.now()).delete()
    LoginLink.objects.create(
        user=user, token_hash=_hash(token), expires_at=timezone.now() + LINK_LIFETIME
    )
    return reverse("accounts:login_link", args=[token])


def is_open_login_link(token: str) -> bool:
    """Whether the link would sign somebody in now. Looking does not use it up."""
    return _open_links(token).exists()


def redeem_login_link(token: str) -> User | None:
    """The link's user, or None when it is unknown, used or too old. Guarded against two clicks."""
    if _open_links(token).update(used_at=timezone.now()) != 1:
        return None
    return LoginLink.objects.select_related("user").get(token_hash=_hash(token)).user


def ensure_owner() -> User:
    """The first administrator, an admin of the main project.

    Made without a usable password, so a link is the way in.
    """
    owner = User.objects.filter(is_superuser=True, is_active=True).order_by("pk").first()
    if owner is None:
        owner = User.objects.create_superuser(OWNER_NAME)
    main = Project.objects.main()
    Membership.objects.get_or_create(project=main, user=owner, defaults={"role": Role.ADMIN})
    return owner


def _open_links(token: str) -> QuerySet[LoginLink]:
    """The link behind a token, when it is neither used nor too old and its user may sign in."""
    return LoginLink.objects.filter(
        token_hash=_hash(token),
        used_at=None,
        expires_at__gt=timezone.now(),
        user__is_active=True,
    )


def _hash(token: str) -> str:
    """What is stored of a token."""
    return hashlib.sha256(token.encode()).hexdigest()
