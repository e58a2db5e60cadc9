"""Who a request comes from, before Django has read it. Called by `webapp.asgi`."""

from __future__ import annotations

from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from typing import Any

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore


def is_signed_in(scope: Mapping[str, Any]) -> bool:
    """Whether the request's session cookie belongs to somebody who has signed in."""
    for name, value in scope["headers"]:
        if name == b"cookie" and (key := _session_key(value.decode("latin-1"))):
            return SESSION_KEY in SessionStore(key)
    return False


def _session_key(header: str) -> str:
    """The session's key in a Cookie header; empty when there is none."""
    cookies = SimpleCookie()
    try:
        cookies.load(header)
    except CookieError:
        return ""
    found = cookies.get(settings.SESSION_COOKIE_NAME)
    return found.value if found else ""
