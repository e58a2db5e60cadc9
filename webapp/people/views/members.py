"""The people of a project: who is in it under which role; admins add, change and remove."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from webapp.accounts.members import add_member, change_role, remove_member
from webapp.accounts.models import Project, Role, User
from webapp.accounts.refusals import PeopleRefused
from webapp.accounts.roles import Right, may, who_may
from webapp.people.access import get_managed_project, get_membership, get_project_for_user
from webapp.people.words import ROLE_WORDS, USUAL_ROLE, read_role
from webapp.ui.fragments import wants_fragment
from webapp.ui.people import signed_in
from webapp.ui.projects import standing_of


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """The people of the project that one looks at; without a project, the list of them."""
    project = standing_of(request).home
    if project is None:
        return redirect("people:projects")
    return redirect("people:members", slug=project.slug)


@require_http_methods(["GET", "POST"])
def index(request: HttpRequest, slug: str) -> HttpResponse:
    """GET lists everybody; POST adds somebody who has an account."""
    if request.method == "GET":
        return _page(request, get_project_for_user(request.user, slug))
    project = get_managed_project(request.user, slug)
    name = request.POST.get("username", "").strip()
    try:
        role = read_role(request.POST.get("role", ""))
        add_member(project, _find_user(name), role, signed_in(request))
    except PeopleRefused as refusal:
        given = {"given": name, "chosen_role": request.POST.get("role", "")}
        return _page(request, project, refusal, given, status=422)
    _say_role(request, name, role, project)
    return redirect("people:members", slug=slug)


@require_POST
def role(request: HttpRequest, slug: str, user: int) -> HttpResponse:
    """Give a member another role."""
    project = get_managed_project(request.user, slug)
    membership = get_membership(project, user)
    try:
        wanted = read_role(request.POST.get("role", ""))
        change_role(membership, wanted, signed_in(request))
    except PeopleRefused as refusal:
        return _page(request, project, refusal, status=422)
    _say_role(request, str(membership.user), wanted, project)
    return redirect("people:members", slug=slug)


@require_http_methods(["GET", "POST"])
def remove(request: HttpRequest, slug: str, user: int) -> HttpResponse:
    """GET names the consequence; POST removes the member."""
    project = get_managed_project(request.user, slug)
    membership = get_membership(project, user)
    if request.method == "GET":
        context = {"project": project, "membership": membership}
        name = "people/remove.html" if wants_fragment(request) else "people/remove_page.html"
        return render(request, name, context)
    try:
        remove_member(membership, signed_in(request))
    except PeopleRefused as refusal:
        return _page(request, project, refusal, status=422)
    values = {"user": membership.user, "project": project}
    messages.success(request, _("%(user)s is no longer in %(project)s.") % values)
    if membership.user == request.user and not membership.user.is_superuser:
        return redirect("people:projects")  # the page of members is theirs no more
    return redirect("people:members", slug=slug)


def _say_role(request: HttpRequest, name: str, role: Role, project: Project) -> None:
    """Tell which role somebody has now."""
    values = {"user": name, "role": role.word, "project": project}
    messages.success(request, _("%(user)s is now %(role)s of %(project)s.") % values)


def _find_user(name: str) -> User:
    """The account of that name. Raises PeopleRefused."""
    user = User.objects.filter(username=name, is_active=True).first() if "\0" not in name else None
    if user is None:
        raise PeopleRefused(
            _("Nobody has that user name. Somebody new comes in by an invitation link."),
            "username",
        )
    return user


def _page(
    request: HttpRequest,
    project: Project,
    refusal: PeopleRefused | None = None,
    given: dict[str, str] | None = None,
    status: int = 200,
) -> HttpResponse:
    """The page, with what was refused and how the form was filled in."""
    may_manage = may(request.user, Right.MANAGE, project)
    context: dict[str, Any] = {
        "project": project,
        "tab": "members",
        "memberships": project.memberships.select_related("user"),
        "may_manage": may_manage,
        "who_may": "" if may_manage else who_may(Right.MANAGE, project),
        "roles": Role,
        "role_words": ROLE_WORDS,
        "refusal": refusal,
        "chosen_role": USUAL_ROLE,
        **(given or {}),
    }
    return render(request, "people/members.html", context, status=status)
