"""One's own account: who one is here, in which projects, and where to change the password."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from webapp.people.words import ROLE_WORDS
from webapp.ui.people import signed_in


@require_safe
def account(request: HttpRequest) -> HttpResponse:
    """The page."""
    user = signed_in(request)
    memberships = user.memberships.select_related("project").order_by("project__name")
    rows = [(each, ROLE_WORDS.get(each.role, "")) for each in memberships]
    return render(request, "people/account.html", {"rows": rows})
