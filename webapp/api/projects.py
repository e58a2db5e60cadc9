"""The project that a request means: named by its slug, else the person's usual one.

Called by operations that make something. Who may make it nowhere is refused as the pages refuse
them; a project that somebody may not see does not exist for them.
"""

from __future__ import annotations

from training_core.contract.field_errors import FieldError
from webapp.accounts.models import Membership, Project, User
from webapp.accounts.roles import Right, may, projects_where, who_may
from webapp.api.problems import Problem, bad_fields
from webapp.datasets.access import find_upload_project, refuse_without_upload
from webapp.runs.access import find_launch_project, launchable_projects, refuse_without_launch


def launch_project(user: User, slug: str, usual: Project | None = None) -> Project:
    """Where a run goes; `usual` is where what it starts from belongs.

    Raises PermissionDenied for who may launch nowhere, Problem 422 at the field `project`.
    """
    refuse_without_launch(user)
    if slug:
        return _judged(user, Right.LAUNCH, _named(user, slug), "launch in")
    if usual is not None and may(user, Right.LAUNCH, usual):
        return usual
    found = find_launch_project(user)
    if found is None:
        slugs = ", ".join(launchable_projects(user).values_list("slug", flat=True))
        raise _refusal(f"Say which project the run belongs to: {slugs}.")
    return found


def upload_project(user: User, slug: str) -> Project:
    """Where a file goes. Raises PermissionDenied and Problem as `launch_project` does."""
    refuse_without_upload(user)
    if slug:
        return _judged(user, Right.ADD_DATASETS, _named(user, slug), "add datasets to")
    found = find_upload_project(user)
    if found is None:
        raise _refusal("You may add datasets to no project any more.")
    return found


def roles_of(user: User) -> list[tuple[Project, str]]:
    """The projects that the user may see, by name, with the role in each; a superuser is admin."""
    if user.is_superuser:
        return [(project, "admin") for project in projects_where(user, Right.VIEW)]
    found = Membership.objects.filter(user=user).select_related("project")
    return [(each.project, each.role) for each in found.order_by("project__name", "project")]


def _named(user: User, slug: str) -> Project:
    """The project of that slug. Raises Problem 422 when there is none that the user may see."""
    seen = projects_where(user, Right.VIEW)
    project = seen.filter(slug=slug).first()
    if project is None:
        slugs = ", ".join(seen.filter(archived_at=None).values_list("slug", flat=True)[:20])
        raise _refusal(f"There is no project {slug!r}; yours are: {slugs or 'none'}.")
    return project


def _judged(user: User, right: Right, project: Project, deed: str) -> Project:
    """The project, in which the user has the right. Raises Problem 422, with who has it."""
    if may(user, right, project):
        return project
    if project.archived_at is not None:
        raise _refusal(f"The project {project} is archived; choose another.")
    raise _refusal(f"You may not {deed} {project}. Ask {who_may(right, project)}.")


def _refusal(message: str) -> Problem:
    """422 at the field `project`."""
    return bad_fields([FieldError("project", message)])
