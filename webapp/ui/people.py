"""The person behind a request, with the type that the rest of the code expects.

Called by views. The middleware has turned away everybody who is not signed in; this says so to
the type checker and fails loudly should a view ever be opened by mistake.
"""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.utils.translation import gettext as _

from webapp.accounts.models import User


def signed_in(request: HttpRequest) -> User:
    """The user. Raises PermissionDenied for anybody who is not signed in."""
    if not isinstance(request.user, User):
        raise PermissionDenied(_("Sign in first."))
    return request.user
