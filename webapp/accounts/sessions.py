"""Who a request comes from, before Django has read it. Called by `webapp.asgi`."""

from __future__ import annotations

from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user
from django.http import HttpRequest

from webapp.accounts.models import User
from webapp.accounts.session_store import SessionStore


def find_user(scope: Mapping[str, Any]) -> User | None:
    """Who has signed in under the request's session cookie and still may; None for nobody."""
    for name, value in scope["headers"]:
        if name == b"cookie" and (key := _session_key(value.decode("latin-1"))):
            request = HttpRequest()
            request.session = SessionStore(key)
            user = get_user(request)
            return user if isinstance(user, User) else None
    return None


def _session_key(header: str) -> str:
    """The session's key in a Cookie header; empty when there is none."""
    cookies = SimpleCookie()
    try:
        cookies.load(header)
    except CookieError:
        return ""
    found = cookies.get(settings.SESSION_COOKIE_NAME)
    return found.value if found else ""
