"""Invitation links: made by an admin, shown once, opened by whoever holds one.

Only the hash of a link's token is stored. A use is counted by a guarded update in the transaction
of the joining itself, so two people who open the last use at once do not both get in.
"""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta

from django.db import transaction
from django.db.models import F
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from webapp.accounts.members import add_member, make_user
from webapp.accounts.models import Invitation, Membership, Project, Role, User
from webapp.accounts.refusals import PeopleRefused
from webapp.accounts.roles import Right, may, who_may
from webapp.audit.record import record

LIFETIMES: dict[int, Promise] = {
    1: gettext_lazy("1 day"),
    7: gettext_lazy("7 days"),
    30: gettext_lazy("30 days"),
}
"""Days that a link may last, in words."""
MOST_USES = 100


@transaction.atomic
def make_invitation(
    project: Project, role: Role, days: int, uses: int, actor: User
) -> tuple[Invitation, str]:
    """A new link: its row, and its path, which nobody can read again. Raises PeopleRefused.

    The maker's rows are held while their right is asked for once more: links are revoked with the
    role, and one that was made at that moment would be missed.
    """
    actor = User.objects.select_for_update(no_key=True).get(pk=actor.pk)
    list(Membership.objects.select_for_update(no_key=True).filter(project=project, user=actor))
    if not may(actor, Right.MANAGE, project):
        raise PeopleRefused(
            _("Links are made by %(who)s.") % {"who": who_may(Right.MANAGE, project)}
        )
    if days not in LIFETIMES:
        raise PeopleRefused(_("Choose how long the link lasts."), "days")
    if not 1 <= uses <= MOST_USES:
        raise PeopleRefused(
            _("A link works for 1 to %(count)s people.") % {"count": MOST_USES}, "uses"
        )
    token = secrets.token_urlsafe(32)
    invitation = Invitation.objects.create(
        project=project,
        role=role,
        made_by=actor,
        token_hash=_hash(token),
        expires_at=timezone.now() + timedelta(days=days),
        uses=uses,
    )
    after = {"role": str(role), "days": days, "uses": uses}
    _note("invitation.make", invitation, actor, after)
    return invitation, reverse("people:invitation", args=[token])


@transaction.atomic
def revoke_invitation(invitation: Invitation, actor: User) -> None:
    """Make the link worthless. Doing it twice changes nothing."""
    open_ones = Invitation.objects.filter(pk=invitation.pk, revoked_at=None)
    if open_ones.update(revoked_at=timezone.now()):
        _note("invitation.revoke", invitation, actor, {"role": invitation.role})


def find_invitation(token: str) -> Invitation | None:
    """The invitation behind a link, in whatever state; None for a link that never was."""
    rows = Invitation.objects.select_related("project", "made_by")
    return rows.filter(token_hash=_hash(token)).first()


@transaction.atomic
def join(invitation: Invitation, user: User) -> Membership:
    """Use the link for somebody who has an account. Raises PeopleRefused."""
    if Membership.objects.filter(project=invitation.project, user=user).exists():
        raise PeopleRefused(_("You are in %(project)s already.") % {"project": invitation.project})
    _take_a_use(invitation)
    membership = add_member(invitation.project, user, Role(invitation.role), user)
    _note("invitation.use", invitation, user, {"role": invitation.role})
    return membership


@transaction.atomic
def join_as_new(invitation: Invitation, username: str, password: str) -> User:
    """Use the link for somebody new, who chooses a name and a password. Raises PeopleRefused."""
    if not password:
        raise PeopleRefused(_("Choose a password."), "password")
    user = make_user(username, password, None)
    join(invitation, user)
    return user


def _take_a_use(invitation: Invitation) -> None:
    """Count one use of a link that is still good. Raises PeopleRefused for any other.

    All conditions are columns of the row itself: through a join the update would become one over a
    subquery, which PostgreSQL does not ask again after it has waited for the row.
    """
    good = Invitation.objects.filter(
        pk=invitation.pk,
        revoked_at=None,
        expires_at__gt=timezone.now(),
        used__lt=F("uses"),
    )
    is_open = Project.objects.filter(pk=invitation.project_id, archived_at=None).exists()
    if not is_open or not good.update(used=F("used") + 1):
        invitation = Invitation.objects.select_related("project").get(pk=invitation.pk)
        raise PeopleRefused(invitation.problem or _("This link no longer works."))


def _note(action: str, invitation: Invitation, actor: User, after: dict[str, object]) -> None:
    """An entry of the audit log."""
    record(
        action,
        actor=actor,
        kind="invitation",
        key=invitation.pk,
        label=str(invitation),
        project=invitation.project,
        after=after,
    )


def _hash(token: str) -> str:
    """What is stored of a token."""
    return hashlib.sha256(token.encode()).hexdigest()
