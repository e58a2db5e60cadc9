"""Bearer tokens: who a request acts for, and whether its token may do that.

No cookie counts here, so no page of another site can make a browser act. A token never may more
than its person: the roles decide as on the pages, and the scopes take away from that. What would
surprise: without the scope `admin` a superuser's token has only the rights of their memberships,
and failed attempts are counted per address but never shut out a good token from the same address.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from django.core.cache import cache
from django.core.exceptions import ValidationError
from django.core.validators import validate_ipv46_address
from django.http import HttpRequest
from ninja.security import HttpBearer

from webapp.accounts.models import User
from webapp.api.models import ApiToken
from webapp.api.problems import Problem
from webapp.api.scopes import Scope
from webapp.api.services import find_token, note_use
from webapp.audit.source import current_token
from webapp.datasets.access import upload_projects

MOST_FAILURES = 20
WINDOW_S = 60
REALM = 'Bearer realm="temper"'


class Caller(NamedTuple):
    """Who a request acts for."""

    user: User
    token: ApiToken


class BearerToken(HttpBearer):
    """Takes requests whose token has a scope."""

    openapi_description = "A token made under Account → API tokens, or by `manage.py api-token`."

    def __init__(self, scope: Scope) -> None:
        super().__init__()
        self.scope = scope

    def __call__(self, request: HttpRequest) -> Caller:
        """The caller. Raises Problem 401, 403 or 429."""
        kind, _, secret = request.headers.get("Authorization", "").partition(" ")
        if kind.lower() != "bearer" or not secret.strip():
            raise Problem(
                401,
                "This address needs a token: send `Authorization: Bearer temper_…`. Make one "
                "under Account → API tokens.",
                headers={"WWW-Authenticate": REALM},
            )
        return self.authenticate(request, secret.strip())

    def authenticate(self, request: HttpRequest, token: str) -> Caller:
        """The caller behind a secret. Raises Problem 401, 403 or 429."""
        found = find_token(token)
        if found is None or found.state != "valid" or not found.user.is_active:
            raise _refusal(request, found)
        if self.scope not in found.scopes:
            raise lacks_scope(found, self.scope)
        note_use(found, _address(request))
        current_token.set(str(found))  # for the audit log; its middleware takes it back
        user = request.user = acting_user(found)
        return Caller(user, found)


def acting_user(token: ApiToken) -> User:
    """Whose roles decide: the token's person, an administrator only with the scope `admin`.

    The row is changed in memory alone and must not be saved.
    """
    user = token.user
    if Scope.ADMIN not in token.scopes:
        user.is_staff = user.is_superuser = False
    return user


def lacks_scope(token: ApiToken, scope: Scope, why: str = "") -> Problem:
    """403 that names the scope, with what it would be needed for."""
    return Problem(
        403,
        f"The token {token} lacks the scope {scope!s}{why}; make one that has it.",
        headers={"WWW-Authenticate": f'{REALM}, error="insufficient_scope", scope="{scope}"'},
    )


def caller_of(request: HttpRequest) -> Caller:
    """The caller of an operation; ninja keeps what the authentication returned."""
    caller: Any = getattr(request, "auth", None)
    if not isinstance(caller, Caller):
        raise Problem(401, "Sign in first.", headers={"WWW-Authenticate": REALM})
    return caller


def user_of(request: HttpRequest) -> User:
    """The person that an operation acts for."""
    return caller_of(request).user


def may_upload(scope: Mapping[str, Any]) -> bool:
    """Whether an ASGI request, not read yet, has a token with which files may be uploaded."""
    for name, value in scope["headers"]:
        if name == b"authorization":
            kind, _, secret = value.decode("latin-1").partition(" ")
            found = find_token(secret.strip()) if kind.lower() == "bearer" else None
            if found is None or found.state != "valid" or Scope.DATA not in found.scopes:
                return False
            return upload_projects(acting_user(found)).exists()
    return False


def _refusal(request: HttpRequest, found: ApiToken | None) -> Problem:
    """401 that says what is wrong with the token, or 429 after too many of them."""
    key = f"api-failures:{_address(request)}"
    cache.add(key, 0, WINDOW_S)
    try:
        failures = cache.incr(key)
    except ValueError:  # it ran out between the two
        failures = 1
    if failures > MOST_FAILURES:
        return Problem(
            429,
            f"More than {MOST_FAILURES} requests with a bad token came from your address; wait a "
            "minute.",
            headers={"Retry-After": str(WINDOW_S)},
        )
    words = "There is no such token."
    if found is not None:
        words = f"The token {found} is {found.state if found.user.is_active else 'not usable'}."
    return Problem(
        401,
        f"{words} Make a new one under Account → API tokens.",
        headers={"WWW-Authenticate": f'{REALM}, error="invalid_token"'},
    )


def _address(request: HttpRequest) -> str | None:
    """Where the request comes from; None behind a socket without addresses."""
    address = request.META.get("REMOTE_ADDR", "")
    try:
        validate_ipv46_address(address)
    except ValidationError:
        return None
    return str(address)
