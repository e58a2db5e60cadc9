"""What a script hears when its person's session has ended: a 401, not the sign-in page.

In the place of Django's LoginRequiredMiddleware. A fragment that were answered with a redirect
would be replaced by the sign-in page; with a 401 the page keeps what it shows and says what to do
(`static/js/ui/trouble.js`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.translation import gettext_lazy as _

WORDS = _("You are signed out. Reload the page to sign in.")


class SignedInOrToldSo(LoginRequiredMiddleware):
    """Sends people to sign in, and tells scripts that they have to."""

    def handle_no_permission(  # type: ignore[override]  # Django itself may answer with anything
        self, request: HttpRequest, view_func: Callable[..., Any]
    ) -> HttpResponseBase:
        """The redirect, or the 401 for a request of htmx."""
        if request.headers.get("HX-Request") == "true":
            return HttpResponse(WORDS, status=401, content_type="text/plain; charset=utf-8")
        return super().handle_no_permission(request, view_func)
