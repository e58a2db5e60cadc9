"""Projects: the list of one's own, choosing one to look at, its name, putting it away."""

from __future__ import annotations

from typing import NamedTuple

from django.contrib import messages
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from webapp.accounts.members import archive_project, make_project, rename_project
from webapp.accounts.models import Membership, Project, Role
from webapp.accounts.refusals import PeopleRefused
from webapp.accounts.roles import Right, projects_where
from webapp.people.access import (
    get_managed_project,
    get_project_for_user,
    refuse_all_but_superusers,
)
from webapp.people.archiving import archive_or_refuse
from webapp.runs.models import Run
from webapp.ui.people import signed_in
from webapp.ui.projects import CHOICE, standing_of


class ProjectRow(NamedTuple):
    """One project in the list."""

    project: Project
    role: str
    """The reader's own."""
    people: int
    runs: int


@require_http_methods(["GET", "POST"])
def index(request: HttpRequest) -> HttpResponse:
    """GET lists the projects that one is in; POST makes one, for superusers."""
    user = signed_in(request)
    refusal, name = None, ""
    if request.method == "POST":
        refuse_all_but_superusers(user)
        name = request.POST.get("name", "")
        try:
            project = make_project(name, user)
        except PeopleRefused as error:
            refusal = error
        else:
            text = _("The project %(project)s is there, and you are its admin.")
            messages.success(request, text % {"project": project})
            return redirect("people:members", slug=project.slug)
    context = {"rows": _rows(request), "refusal": refusal, "given": name}
    return render(request, "people/projects.html", context, status=422 if refusal else 200)


def _rows(request: HttpRequest) -> list[ProjectRow]:
    """The projects that one sees. Counted apart: one query over both would multiply their rows."""
    roles = {project.pk: Role(role).word for project, role in standing_of(request).roles}
    seen = list(projects_where(request.user, Right.VIEW))
    people, runs = (
        dict(model.objects.filter(project__in=seen).values_list("project").annotate(n=Count("pk")))
        for model in (Membership, Run)
    )
    return [
        ProjectRow(each, roles.get(each.pk, ""), people.get(each.pk, 0), runs.get(each.pk, 0))
        for each in seen
    ]


@require_POST
def switch(request: HttpRequest) -> HttpResponse:
    """Look at one project from now on, or at all of them together."""
    slug = request.POST.get(CHOICE, "")
    if slug:
        request.session[CHOICE] = get_project_for_user(request.user, slug).slug
    else:
        request.session.pop(CHOICE, None)
    target = request.POST.get("next", "")
    is_ours = url_has_allowed_host_and_scheme(target, allowed_hosts={request.get_host()})
    return redirect(target if is_ours and target.startswith("/") else "runs:index")


@require_http_methods(["GET", "POST"])
def settings(request: HttpRequest, slug: str) -> HttpResponse:
    """GET shows name and archive; POST gives another name."""
    project = get_managed_project(request.user, slug)
    if request.method == "GET":
        return _page(request, project)
    try:
        rename_project(project, request.POST.get("name", ""), signed_in(request))
    except PeopleRefused as refusal:
        project.refresh_from_db()
        return _page(request, project, refusal, status=422)
    messages.success(request, _("The project is now called %(project)s.") % {"project": project})
    return redirect("people:settings", slug=slug)


@require_POST
def archive(request: HttpRequest, slug: str) -> HttpResponse:
    """Put the project away (`to=archive`), or take it out again (`to=use`)."""
    project = get_managed_project(request.user, slug)
    try:
        if request.POST.get("to") == "use":
            archive_project(project, signed_in(request), is_archived=False)
            words = _("%(project)s is out of the archive.")
        elif request.POST.get("to") == "archive":
            archive_or_refuse(project, signed_in(request))
            words = _("%(project)s is archived: it is read, and nothing new is made in it.")
        else:
            raise PeopleRefused(_("Say what the project goes to: archive or use."))
    except PeopleRefused as refusal:
        return _page(request, project, refusal, status=422)
    messages.success(request, words % {"project": project})
    return redirect("people:settings", slug=slug)


def _page(
    request: HttpRequest, project: Project, refusal: PeopleRefused | None = None, status: int = 200
) -> HttpResponse:
    """The settings of one project."""
    context = {"project": project, "tab": "settings", "refusal": refusal, "may_manage": True}
    return render(request, "people/settings.html", context, status=status)
