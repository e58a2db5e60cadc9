"""Projects: the list of one's own, choosing one to look at, its name, putting it away."""

from __future__ import annotations

from django.contrib import messages
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_http_methods, require_POST

from webapp.accounts.members import make_project, rename_project
from webapp.accounts.models import Project
from webapp.accounts.refusals import PeopleRefused
from webapp.accounts.roles import Right, projects_where
from webapp.people.access import (
    get_managed_project,
    get_project_for_user,
    refuse_all_but_superusers,
)
from webapp.people.archiving import archive_or_refuse
from webapp.ui.people import signed_in
from webapp.ui.projects import CHOICE, standing_of


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
            messages.success(request, f"The project {project} is there, and you are its admin.")
            return redirect("people:members", slug=project.slug)
    seen = projects_where(user, Right.VIEW).annotate(
        people=Count("memberships", distinct=True), run_count=Count("runs", distinct=True)
    )
    roles = {project.pk: role for project, role in standing_of(request).roles}
    rows = [(project, roles.get(project.pk, "")) for project in seen]
    context = {"rows": rows, "refusal": refusal, "given": name}
    return render(request, "people/projects.html", context, status=422 if refusal else 200)


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
    messages.success(request, f"The project is now called {project}.")
    return redirect("people:settings", slug=slug)


@require_POST
def archive(request: HttpRequest, slug: str) -> HttpResponse:
    """Put the project away, or take it out again."""
    project = get_managed_project(request.user, slug)
    try:
        archive_or_refuse(project, signed_in(request))
    except PeopleRefused as refusal:
        return _page(request, project, refusal, status=422)
    archived = "is archived: it is read, and nothing new is made in it."
    words = archived if project.archived_at else "is out of the archive."
    messages.success(request, f"{project} {words}")
    return redirect("people:settings", slug=slug)


def _page(
    request: HttpRequest, project: Project, refusal: PeopleRefused | None = None, status: int = 200
) -> HttpResponse:
    """The settings of one project."""
    context = {"project": project, "tab": "settings", "refusal": refusal, "may_manage": True}
    return render(request, "people/settings.html", context, status=status)
