"""The page behind an invitation link: join as somebody new, or with one's account.

Opening it uses nothing up, so that a link preview cannot spend it. Guessing is pointless (256
random bits), and each address may still post only so often.
"""

from __future__ import annotations

from allauth.core import ratelimit
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.password_validation import password_validators_help_texts
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from webapp.accounts.invitations import find_invitation, join, join_as_new
from webapp.accounts.models import Invitation, Role, User
from webapp.accounts.refusals import PeopleRefused
from webapp.people.words import ROLE_WORDS

BUSY = gettext_lazy("Too many tries from your address; open the link again in a minute.")
TOO_MANY = 429


@login_not_required
@never_cache
@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
def invitation(request: HttpRequest, token: str) -> HttpResponse:
    """GET says what the link is for; POST joins."""
    if not ratelimit.consume(request, action="invitation"):  # counts POSTs alone
        return _page(request, None, status=TOO_MANY, problem=str(BUSY))
    found = find_invitation(token)
    if found is None:
        return _page(request, None, status=404, problem=_("There is no such invitation."))
    if found.problem:
        return _page(request, found, status=410, problem=found.problem)
    if request.method != "POST":
        return _page(request, found)
    try:
        user = _join(request, found)
    except PeopleRefused as refusal:
        return _page(request, found, refusal=refusal, status=422)
    values = {"project": found.project, "role": Role(found.role).word}
    messages.success(request, _("Welcome to %(project)s: you are its %(role)s.") % values)
    if not request.user.is_authenticated:
        login(request, user, backend=settings.AUTHENTICATION_BACKENDS[0])
    return redirect(settings.LOGIN_REDIRECT_URL)


def _join(request: HttpRequest, found: Invitation) -> User:
    """Who has joined. Raises PeopleRefused."""
    if isinstance(request.user, User):
        join(found, request.user)
        return request.user
    name, password = (request.POST.get(key, "") for key in ("username", "password"))
    return join_as_new(found, name.strip(), password)


def _page(
    request: HttpRequest,
    found: Invitation | None,
    problem: str = "",
    refusal: PeopleRefused | None = None,
    status: int = 200,
) -> HttpResponse:
    """The page, or why the link does not work."""
    context = {
        "invitation": found,
        "problem": problem,
        "is_busy": status == TOO_MANY,
        "password_rules": " ".join(password_validators_help_texts()),
        "refusal": refusal,
        "given": request.POST.get("username", ""),
        "meaning": ROLE_WORDS.get(found.role, "") if found else "",
    }
    return render(request, "people/invitation.html", context, status=status)
