"""Who may see and who may take a step under glass: the only way in which a view gets one.

A step is seen by the members of its project. Taking one holds a device, so it needs the right to
launch; a step is cancelled and deleted by who asked for it and by the project's admins.
"""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.http import Http404
from django.utils.translation import gettext as _

from webapp.accounts.models import Project, User
from webapp.accounts.roles import Right, may, who_may
from webapp.datasets.models import DatasetVersion
from webapp.glass.models import GlassQuerySet, GlassStep
from webapp.runs.access import find_launch_project, launchable_projects


def glass_steps_for(user: User | AnonymousUser) -> GlassQuerySet:
    """Steps and tryouts that the user may see, the newest first."""
    seen = GlassStep.objects.visible_to(user)
    return seen.select_related("owner", "project", "run", "version")


def get_glass_step_for_user(user: User | AnonymousUser, pk: UUID) -> GlassStep:
    """The step. Raises Http404 when there is none that the user may see."""
    step = glass_steps_for(user).filter(pk=pk).first()
    if step is None:
        raise Http404(_("There is no such step under glass."))
    return step


def get_tryout_for_user(user: User | AnonymousUser, version: DatasetVersion, key: str) -> GlassStep:
    """A tryout of that version, by its id. Raises Http404 when the user may see none such."""
    try:
        pk = UUID(key)
    except ValueError:
        raise Http404(_("There is no such tryout.")) from None
    found = glass_steps_for(user).tryouts_of(version).filter(pk=pk).first()
    if found is None:
        raise Http404(_("There is no such tryout."))
    return found


def get_own_glass_step(user: User | AnonymousUser, pk: UUID) -> GlassStep:
    """The same, to end or delete it. Raises PermissionDenied, with who can."""
    step = get_glass_step_for_user(user, pk)
    if not can_end(user, step):
        if step.is_tryout:
            words = _("%(owner)s asked for this tryout; only they or %(admins)s end it.")
        else:
            words = _("%(owner)s asked for this step; only they or %(admins)s end it.")
        admins = who_may(Right.STEER_ANY, step.project)
        raise PermissionDenied(words % {"owner": step.owner, "admins": admins})
    return step


def can_end(user: User | AnonymousUser, step: GlassStep) -> bool:
    """Whether pages offer this user to cancel and delete the step."""
    if not isinstance(user, User):
        return False
    right = Right.STEER_OWN if step.owner_id == user.pk else Right.STEER_ANY
    return may(user, right, step.project)


def glass_project(user: User, wanted: Project | None) -> Project:
    """Where a step goes. Raises PermissionDenied, with who can, for a project without the right.

    Without a wish it is where the user launches, else the first project where they may.
    """
    if wanted is not None:
        if may(user, Right.LAUNCH, wanted):
            return wanted
        words = _("Taking a step in %(project)s needs the right to launch. Ask %(who)s.")
        who = who_may(Right.LAUNCH, wanted)
        raise PermissionDenied(words % {"project": wanted, "who": who})
    found = find_launch_project(user) or launchable_projects(user).first()
    if found is None:
        raise PermissionDenied(_("Your role takes no steps: it needs the right to launch."))
    return found
