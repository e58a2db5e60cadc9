"""The tokens page: make one, see it once, know which are in use, revoke."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from webapp.accounts.models import User
from webapp.api.access import get_token_for_user, tokens_of
from webapp.api.forms import TokenForm
from webapp.api.scopes import Scope
from webapp.api.services import DEFAULT_DAYS, create_token, revoke_token
from webapp.ui.fragments import wants_fragment
from webapp.ui.people import signed_in

LISTED = 200


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def tokens(request: HttpRequest) -> HttpResponse:
    """GET lists; POST makes one and shows its secret, this one time."""
    user = signed_in(request)
    if request.method != "POST":
        return _page(request, user, TokenForm(initial={"days": DEFAULT_DAYS}))
    form = TokenForm(request.POST)
    if not form.is_valid():
        return _page(request, user, form, status=422)
    wanted = form.cleaned_data
    scopes = [Scope(value) for value in wanted["scopes"]]
    token, secret = create_token(user, wanted["name"], scopes, wanted["days"], actor=user)
    fresh = {"fresh": token, "secret": secret, "address": request.build_absolute_uri("/")}
    return _page(request, user, TokenForm(initial={"days": DEFAULT_DAYS}), status=201, **fresh)


@require_http_methods(["GET", "POST"])
def revoke(request: HttpRequest, pk: int) -> HttpResponse:
    """GET asks, POST revokes."""
    user = signed_in(request)
    token = get_token_for_user(user, pk)
    if request.method == "POST":
        revoke_token(token, user)
        text = _("The token %(token)s is revoked: it opens nothing any more.")
        messages.success(request, text % {"token": token})
        return redirect("tokens:index")
    name = "tokens/revoke.html" if wants_fragment(request) else "tokens/revoke_page.html"
    return render(request, name, {"token": token})


def _page(
    request: HttpRequest, user: User, form: TokenForm, status: int = 200, **more: object
) -> HttpResponse:
    """The page with what there is."""
    rows = tokens_of(user)
    context = {
        "form": form,
        "tokens": rows.filter(revoked_at=None, expires_at__gt=timezone.now())[:LISTED],
        "ended": rows.exclude(revoked_at=None, expires_at__gt=timezone.now())[:LISTED],
        **more,
    }
    return render(request, "tokens/page.html", context, status=status)
