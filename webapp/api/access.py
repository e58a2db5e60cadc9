"""Which tokens somebody may see and revoke: their own, nobody else's."""

from __future__ import annotations

from django.http import Http404
from django.utils.translation import gettext as _

from webapp.accounts.models import User
from webapp.api.models import ApiToken, ApiTokenQuerySet


def tokens_of(user: User) -> ApiTokenQuerySet:
    """The person's tokens, the newest first."""
    return ApiToken.objects.filter(user=user)


def get_token_for_user(user: User, pk: int) -> ApiToken:
    """One of them. Raises Http404."""
    token = tokens_of(user).filter(pk=pk).first()
    if token is None:
        raise Http404(_("You have no such token."))
    return token
