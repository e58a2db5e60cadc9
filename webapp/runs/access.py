"""Who may see and who may steer a run: the only way in which a view gets a Run.

Called by every view that names a run. A run that somebody may not see does not exist for them; one
that they may see and not steer is refused with a sentence that says who can.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import Http404
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from webapp.accounts.models import Project, User
from webapp.accounts.roles import Right, may, projects_where, role_in, who_may
from webapp.runs.models import Checkpoint, Run


def get_run_for_user(user: User | AnonymousUser, number: int) -> Run:
    """The run of that number. Raises Http404 when there is none that the user may see."""
    runs = Run.objects.visible_to(user).select_related("owner", "project")
    run = runs.filter(number=number).first()
    if run is None:
        raise Http404(_("There is no run #%(number)s.") % {"number": number})
    return run


def get_controllable_run_for_user(user: User | AnonymousUser, number: int) -> Run:
    """The same for steering. Raises PermissionDenied, with who can, when the user may not."""
    run = get_run_for_user(user, number)
    if not can_control(user, run):
        raise PermissionDenied(why_not_control(user, run))
    return run


def get_checkpoint_for_user(user: User | AnonymousUser, pk: int) -> Checkpoint:
    """The checkpoint. Raises Http404 when there is none of a run that the user may see."""
    checkpoint = (
        Checkpoint.objects.filter(pk=pk, run__in=Run.objects.visible_to(user))
        .select_related("run__project", "run__owner")
        .first()
    )
    if checkpoint is None:
        raise Http404(_("There is no such checkpoint."))
    return checkpoint


def can_control(user: User | AnonymousUser, run: Run) -> bool:
    """Whether pages offer this user the buttons of the run."""
    return may(user, steering_right(user, run), run.project)


def steering_right(user: User | AnonymousUser, run: Run) -> Right:
    """The right that steering the run takes."""
    return Right.STEER_OWN if run.owner_id == user.pk else Right.STEER_ANY


def why_not_control(user: User | AnonymousUser, run: Run) -> str:
    """The sentence for somebody who sees the run and may not steer it."""
    if run.project.archived_at is not None:
        words = _("The project %(project)s is archived: nothing in it is steered any more.")
        return words % {"project": run.project}
    admins = who_may(Right.STEER_ANY, run.project)
    if isinstance(user, User) and run.owner_id == user.pk:
        own = role_in(user, run.project)
        role = str(own.label).lower() if own else pgettext("role", "none")
        words = _("Your role in %(project)s is %(role)s, which steers no runs. Ask %(who)s.")
        return words % {"project": run.project, "role": role, "who": admins}
    words = _("Run #%(number)s belongs to %(owner)s; only they or %(who)s steer it.")
    return words % {"number": run.number, "owner": run.owner, "who": admins}


def launchable_projects(user: User | AnonymousUser) -> QuerySet[Project]:
    """Projects in which the user may launch runs."""
    return projects_where(user, Right.LAUNCH)


def find_launch_project(user: User, projects: Sequence[Project] | None = None) -> Project | None:
    """Where a run goes when nobody says: the only project, else the one launched in last.

    `projects` are those in which the user may launch, where the caller has them already.
    """
    found = list(launchable_projects(user)) if projects is None else projects
    if len(found) < 2:
        return found[0] if found else None
    runs = Run.objects.filter(owner=user, project__in=found).order_by("-number")
    last = runs.values_list("project_id", flat=True).first()
    return next((project for project in found if project.pk == last), None)


def refuse_without_launch(user: User) -> None:
    """Raise PermissionDenied, with who can, for somebody who may launch in no project."""
    if launchable_projects(user).exists():
        return
    raise PermissionDenied(why_no_launch(user))


def why_no_launch(user: User) -> str:
    """The sentence for somebody who may launch nowhere."""
    project = projects_where(user, Right.VIEW).filter(Q(archived_at=None)).first()
    if project is None:
        return _("You are in no project that is open; ask somebody who runs this installation.")
    return _("Your role launches no runs. Ask %(who)s.") % {"who": who_may(Right.LAUNCH, project)}
