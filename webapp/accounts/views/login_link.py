"""The page behind a one-time link: a button, so that a link preview cannot use the link up."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from webapp.accounts.services import is_open_login_link, redeem_login_link


@login_not_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def login_link(request: HttpRequest, token: str) -> HttpResponse:
    """GET shows one button, or that the link is spent; POST signs in and redirects to the runs."""
    if request.method == "POST":
        user = redeem_login_link(token)
        if user is not None:
            login(request, user, backend=settings.AUTHENTICATION_BACKENDS[0])
            return redirect(settings.LOGIN_REDIRECT_URL)
    elif is_open_login_link(token):
        return render(request, "account/login_link.html", {"token": token})
    return render(request, "account/login_link.html", {"spent": True}, status=410)
