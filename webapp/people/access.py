"""Who may see a project's people and who may change them: the only way to a Project in views here.

A project that somebody is not in does not exist for them.
"""

from __future__ import annotations

from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.http import Http404
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from webapp.accounts.models import Invitation, Membership, Project, User
from webapp.accounts.roles import Right, may, projects_where, who_may


def get_project_for_user(user: User | AnonymousUser, slug: str) -> Project:
    """The project. Raises Http404 when there is none that the user may see."""
    found = projects_where(user, Right.VIEW).filter(slug=slug)
    project = found.first() if "\0" not in slug else None  # a form may hold anything
    if project is None:
        raise Http404(_("There is no such project."))
    return project


def get_managed_project(user: User | AnonymousUser, slug: str) -> Project:
    """The same for changing it. Raises PermissionDenied, with who can, when the user may not."""
    project = get_project_for_user(user, slug)
    if not may(user, Right.MANAGE, project):
        raise PermissionDenied(
            _("Members are managed by %(who)s.") % {"who": who_may(Right.MANAGE, project)}
        )
    return project


def get_membership(project: Project, user_pk: int) -> Membership:
    """Somebody's membership of a project that the caller manages. Raises Http404."""
    found = project.memberships.select_related("user").filter(user=user_pk).first()
    if found is None:
        raise Http404(_("Nobody like that is in the project."))
    return found


def get_invitation(project: Project, pk: int) -> Invitation:
    """An invitation to a project that the caller manages. Raises Http404."""
    found = project.invitations.filter(pk=pk).first()
    if found is None:
        raise Http404(_("There is no such invitation."))
    return found


def refuse_all_but_superusers(user: User) -> None:
    """Raise PermissionDenied for everybody but superusers, who look after accounts and projects."""
    if user.is_superuser:
        return
    names = User.objects.filter(is_superuser=True, is_active=True).order_by("pk")
    who = pgettext("between names", ", ").join(str(each) for each in names[:3])
    raise PermissionDenied(
        _("Only superusers of this installation do this: %(who)s.") % {"who": who}
    )
