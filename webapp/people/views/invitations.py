"""Invitation links of a project, for its admins: make one, see what became of each, revoke it."""

from __future__ import annotations

import re

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from webapp.accounts.invitations import LIFETIMES, MOST_USES, make_invitation, revoke_invitation
from webapp.accounts.models import Project, Role
from webapp.accounts.refusals import PeopleRefused
from webapp.people.access import get_invitation, get_managed_project
from webapp.people.words import ROLE_WORDS, USUAL_ROLE, read_role
from webapp.ui.people import signed_in

LISTED = 100
USUAL_DAYS = "7"


@never_cache  # the answer to a POST holds the link, once
@require_http_methods(["GET", "POST"])
def index(request: HttpRequest, slug: str) -> HttpResponse:
    """GET lists the links; POST makes one and shows it, which no later page can."""
    project = get_managed_project(request.user, slug)
    if request.method == "GET":
        return _page(request, project)
    try:
        role = read_role(request.POST.get("role", ""))
        days, uses = (_whole(request.POST.get(name, "")) for name in ("days", "uses"))
        _, path = make_invitation(project, role, days, uses, signed_in(request))
    except PeopleRefused as refusal:
        return _page(request, project, refusal=refusal, status=422)
    return _page(request, project, link=request.build_absolute_uri(path))


@require_POST
def revoke(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Make a link worthless."""
    project = get_managed_project(request.user, slug)
    revoke_invitation(get_invitation(project, pk), signed_in(request))
    messages.success(request, _("The link works no more."))
    return redirect("people:invitations", slug=slug)


def _page(
    request: HttpRequest,
    project: Project,
    link: str = "",
    refusal: PeopleRefused | None = None,
    status: int = 200,
) -> HttpResponse:
    """The page."""
    found = list(project.invitations.select_related("made_by", "project")[: LISTED + 1])
    context = {
        "project": project,
        "tab": "invitations",
        "may_manage": True,
        "invitations": found[:LISTED],
        "is_cut": len(found) > LISTED,
        "listed": LISTED,
        "roles": Role,
        "role_words": ROLE_WORDS,
        "lifetimes": LIFETIMES,
        "most_uses": MOST_USES,
        "link": link,
        "refusal": refusal,
        "chosen_role": request.POST.get("role", USUAL_ROLE),
        "chosen_days": request.POST.get("days", USUAL_DAYS),
        "given_uses": request.POST.get("uses", "1"),
    }
    return render(request, "people/invitations.html", context, status=status)


def _whole(text: str) -> int:
    """A number from the form; 0, which every rule refuses, for anything else."""
    return int(text) if re.fullmatch(r"[0-9]{1,4}", text.strip()) else 0
