"""Ask for a step under glass, and the list of those that were taken."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from webapp.accounts.models import Project, User
from webapp.accounts.roles import Right, may
from webapp.glass.access import glass_project, glass_steps_for
from webapp.glass.forms import GlassForm
from webapp.glass.page import find_spec, prompt_words
from webapp.glass.services import ask_for_step
from webapp.glass.subjects import base_subjects, checkpoints_for, find_subject
from webapp.runs.access import launchable_projects, refuse_without_launch, why_no_launch
from webapp.runs.origins import new_key
from webapp.ui.people import signed_in
from webapp.ui.projects import current_project

LISTED = 30


@require_http_methods(["GET", "POST"])
def index(request: HttpRequest) -> HttpResponse:
    """GET shows the form for a model and the newest steps; POST asks for a step."""
    user = signed_in(request)
    if request.method == "GET":
        may_take = launchable_projects(user).exists()
        form = GlassForm(find_subject(user, request.GET.get("model", ""))) if may_take else None
        return _page(request, form)
    refuse_without_launch(user)
    form = GlassForm(find_subject(user, request.POST.get("model", "")), request.POST)
    project = glass_project(user, form.subject.project or _chosen(request, user))
    if not form.is_valid():
        return _page(request, form, status=422)
    key = request.POST.get("idempotency_key", "")
    step = ask_for_step(user, project, form.subject, form.make_spec(), key)
    return redirect("glass:detail", glass_id=step.pk)


def _chosen(request: HttpRequest, user: User) -> Project | None:
    """The project that the person looks at, if they may launch there."""
    current = current_project(request)
    return current if current is not None and may(user, Right.LAUNCH, current) else None


def _page(request: HttpRequest, form: GlassForm | None, status: int = 200) -> HttpResponse:
    """The page."""
    user = signed_in(request)
    steps = glass_steps_for(user).steps()
    if (project := current_project(request)) is not None:
        steps = steps.filter(project=project)
    context: dict[str, Any] = {
        "form": form,
        "key": new_key(),
        "why_not": "" if form else why_no_launch(user),
        "steps": [(step, prompt_words(find_spec(step))) for step in steps[:LISTED]],
    }
    if form is not None:
        context["bases"] = base_subjects()
        context["checkpoints"] = checkpoints_for(user)
    return render(request, "glass/index.html", context, status=status)
