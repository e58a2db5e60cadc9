"""Which role may do what in a project: the one table of rights, and the two questions about it.

Asked by every `access` module and by services that change something. A superuser may do everything
in every project; somebody without a membership may do nothing in it and does not learn that it is
there. A project that is put away is read and managed, and nothing new is made in it.
"""

from __future__ import annotations

from enum import StrEnum

from django.contrib.auth.models import AnonymousUser
from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from webapp.accounts.models import Project, Role, User


class Right(StrEnum):
    """What one may be allowed to do in a project."""

    VIEW = "view"
    """See its runs, rollouts and datasets."""
    COMMENT = "comment"
    """Write comments."""
    ADD_DATASETS = "add_datasets"
    """Upload datasets, and new versions of one's own."""
    CHANGE_DATASETS = "change_datasets"
    """Add versions to everybody's datasets and finish everybody's imports."""
    LAUNCH = "launch"
    """Launch runs."""
    EXPORT = "export"
    """Make checkpoints into model folders; keep, cancel and delete one's own."""
    STEER_OWN = "steer_own"
    """Stop, pause, resume, archive and delete one's own runs."""
    STEER_ANY = "steer_any"
    """The same with everybody's runs."""
    MANAGE = "manage"
    """Members, roles, invitations, the audit log, other people's comments."""


_WRITERS = frozenset({Role.REVIEWER, Role.CURATOR, Role.RESEARCHER, Role.ADMIN})
_RESEARCHERS = frozenset({Role.RESEARCHER, Role.ADMIN})

ROLES_WITH: dict[Right, frozenset[Role]] = {
    Right.VIEW: frozenset(Role),
    Right.COMMENT: _WRITERS,
    Right.ADD_DATASETS: frozenset({Role.CURATOR}) | _RESEARCHERS,
    Right.CHANGE_DATASETS: frozenset({Role.CURATOR, Role.ADMIN}),
    Right.LAUNCH: _RESEARCHERS,
    Right.EXPORT: _RESEARCHERS,
    Right.STEER_OWN: _RESEARCHERS,
    Right.STEER_ANY: frozenset({Role.ADMIN}),
    Right.MANAGE: frozenset({Role.ADMIN}),
}
"""The table."""

WHEN_ARCHIVED = frozenset({Right.VIEW, Right.MANAGE})
"""Rights that outlive a project's being put away."""
NAMED_ADMINS = 3


def projects_where(user: User | AnonymousUser, right: Right) -> QuerySet[Project]:
    """The projects in which the user has the right; none for who is not signed in or not active."""
    if not isinstance(user, User) or not user.is_active:
        return Project.objects.none()
    projects = Project.objects.all()
    if right not in WHEN_ARCHIVED:
        projects = projects.filter(archived_at=None)
    if user.is_superuser:
        return projects
    return projects.filter(memberships__user=user, memberships__role__in=ROLES_WITH[right])


def may(user: User | AnonymousUser, right: Right, project: Project) -> bool:
    """Whether the user has the right in the project."""
    return projects_where(user, right).filter(pk=project.pk).exists()


def role_in(user: User | AnonymousUser, project: Project) -> Role | None:
    """The user's own role in the project; None without one, also for a superuser."""
    if not isinstance(user, User):
        return None
    found = project.memberships.filter(user=user).values_list("role", flat=True).first()
    return Role(found) if found else None


def who_may(right: Right, project: Project) -> str:
    """For a sentence of refusal: `a researcher or admin of Main (admins: ada, bob)`."""
    comma = pgettext("between names", ", ")
    roles = [role.word for role in Role if role in ROLES_WITH[right]]
    words = roles[0]
    if len(roles) > 1:
        words = _("%(roles)s or %(role)s") % {"roles": comma.join(roles[:-1]), "role": roles[-1]}
    whole = (
        _("an %(roles)s of %(project)s") if words[0] in "aeiou" else _("a %(roles)s of %(project)s")
    )
    who = whole % {"roles": words, "project": project}
    admins = project.memberships.filter(role=Role.ADMIN, user__is_active=True).order_by("pk")
    names = list(admins.values_list("user__username", flat=True)[: NAMED_ADMINS + 1])
    if not names:
        return who
    values = {"who": who, "names": comma.join(names[:NAMED_ADMINS])}
    if len(names) > NAMED_ADMINS:
        return _("%(who)s (admins: %(names)s and others)") % values
    return _("%(who)s (admins: %(names)s)") % values
