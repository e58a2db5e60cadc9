"""Which endpoints somebody may see and change: their own, nobody else's."""

from __future__ import annotations

from django.db.models import QuerySet
from django.http import Http404
from django.utils.translation import gettext as _

from webapp.accounts.models import User
from webapp.webhooks.models import Endpoint


def endpoints_of(user: User) -> QuerySet[Endpoint]:
    """The person's endpoints, the newest first."""
    return Endpoint.objects.filter(user=user).select_related("project")


def get_endpoint_for_user(user: User, pk: int) -> Endpoint:
    """One of them. Raises Http404."""
    endpoint = endpoints_of(user).filter(pk=pk).first()
    if endpoint is None:
        raise Http404(_("You have no such webhook."))
    return endpoint
