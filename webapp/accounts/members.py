"""Change who belongs to a project, make projects and accounts. Called by the pages of people.

Every change is one transaction with its entry in the audit log. A project keeps at least one active
admin: the rows of its admins are locked while one of them steps back, and the invitation links that
this one made are revoked, so that nobody comes back by a link of their own. Whether the caller may
do this at all is asked by the view, with `webapp.accounts.roles`. Rows are locked in one order:
accounts, then memberships, then projects.
"""

from __future__ import annotations

import re
import unicodedata

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.text import slugify
from django.utils.translation import gettext as _

from webapp.accounts.models import Invitation, Membership, Project, Role, User
from webapp.accounts.refusals import PeopleRefused
from webapp.accounts.session_store import end_sessions
from webapp.audit.record import record

LONGEST_PROJECT_NAME = 80
UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f"
    "\u2028-\u202e\u2060-\u206f\u2800\u3164\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff]"
)
"""Controls, marks that turn the direction of what stands around a name, and signs that Unicode has
drawn as nothing, some of them letters. Joiners and variation selectors belong to real names."""
NOT_A_SLUG = frozenset({"switch"})
"""Words that mean something else in `/projects/WORD/`."""


@transaction.atomic
def add_member(project: Project, user: User, role: Role, actor: User | None) -> Membership:
    """Give somebody a role in a project. Raises PeopleRefused when they have one already."""
    membership, is_new = Membership.objects.get_or_create(
        project=project, user=user, defaults={"role": role}
    )
    if not is_new:
        raise PeopleRefused(
            _("%(user)s is %(role)s of %(project)s already; change the role instead.")
            % {"user": user, "role": Role(membership.role).word, "project": project},
            "username",
        )
    _note("member.add", membership, actor, after={"role": role})
    return membership


@transaction.atomic
def change_role(membership: Membership, role: Role, actor: User) -> None:
    """Give a member another role. Raises PeopleRefused for the last admin."""
    membership = _locked(membership)
    before = membership.role
    if before == role:
        return
    if before == Role.ADMIN:
        _refuse_last_admin(
            membership,
            _(
                "%(user)s is the only admin of %(project)s; make somebody else an admin before "
                "%(user)s gets another role."
            ),
        )
        _revoke_links(membership.user, actor, membership.project)
    membership.role = role
    membership.save(update_fields=["role"])
    _note("member.role", membership, actor, before={"role": before}, after={"role": role})


@transaction.atomic
def remove_member(membership: Membership, actor: User) -> None:
    """Take somebody out of a project. Raises PeopleRefused for the last admin."""
    membership = _locked(membership)
    if membership.role == Role.ADMIN:
        _refuse_last_admin(
            membership,
            _(
                "%(user)s is the only admin of %(project)s; make somebody else an admin before "
                "%(user)s leaves."
            ),
        )
    _revoke_links(membership.user, actor, membership.project)
    _note("member.remove", membership, actor, before={"role": membership.role})
    membership.delete()


@transaction.atomic
def make_project(name: str, actor: User) -> Project:
    """A new project with the actor as its admin. Raises PeopleRefused for a bad or taken name."""
    name = clean_project_name(name)
    slug = slugify(name)[:50] or "project"
    known = Project.objects.filter(slug__startswith=slug)
    taken = NOT_A_SLUG | set(known.values_list("slug", flat=True))
    free = (f"{slug}-{n}" if n > 1 else slug for n in range(1, len(taken) + 2))
    try:
        with transaction.atomic():
            project = Project.objects.create(
                name=name, slug=next(each for each in free if each not in taken)
            )
    except IntegrityError:
        raise PeopleRefused(_("Somebody has just made that project; look again."), "name") from None
    _note_project("project.make", project, actor, after={"slug": project.slug})
    add_member(project, actor, Role.ADMIN, actor)
    return project


@transaction.atomic
def rename_project(project: Project, name: str, actor: User) -> None:
    """Another name; the slug in addresses stays. Raises PeopleRefused."""
    before, name = project.name, clean_project_name(name, project)
    if name == before:
        return
    project.name = name
    project.save(update_fields=["name"])
    _note_project(
        "project.rename", project, actor, before={"name": before}, after={"name": project.name}
    )


@transaction.atomic
def archive_project(project: Project, actor: User, is_archived: bool) -> None:
    """Put a project away, or take it out again; nothing of it is deleted.

    Doing it twice changes nothing. Whoever held the project open (`hold_project`) is waited for.
    """
    project = Project.objects.select_for_update().get(pk=project.pk)
    if (project.archived_at is not None) == is_archived:
        return
    project.archived_at = timezone.now() if is_archived else None
    project.save(update_fields=["archived_at"])
    _note_project("project.archive" if is_archived else "project.unarchive", project, actor)


def hold_project(pk: int) -> Project:
    """The project as it is now, not put away before the caller's transaction ends if it is open.

    For who makes something in it that an archived project must not have, such as a run that waits.
    """
    return Project.objects.select_for_update(no_key=True).get(pk=pk)


def clean_project_name(name: str, own: Project | None = None) -> str:
    """A name fit for a project. Raises PeopleRefused."""
    name = " ".join(name.split())
    if UNSEEN.search(name):
        raise PeopleRefused(_("The name holds a character that nobody sees; type it anew."), "name")
    if not any(unicodedata.category(sign)[0] in "LNPS" for sign in name):
        raise PeopleRefused(_("Give the project a name."), "name")
    if len(name) > LONGEST_PROJECT_NAME:
        raise PeopleRefused(
            _("At most %(count)s characters.") % {"count": LONGEST_PROJECT_NAME}, "name"
        )
    others = Project.objects.filter(name__iexact=name)
    if (others.exclude(pk=own.pk) if own else others).exists():
        raise PeopleRefused(_("There is a project of that name."), "name")
    return name


@transaction.atomic
def make_user(username: str, password: str, actor: User | None) -> User:
    """A new account; without a password only a sign-in link opens it. Raises PeopleRefused."""
    if not username:
        raise PeopleRefused(_("Choose a user name."), "username")
    user = User(username=User.normalize_username(username))
    try:
        user.clean_fields(exclude=["password"])
    except ValidationError as error:
        raise PeopleRefused(" ".join(error.messages), "username") from None
    if UNSEEN.search(user.username):
        raise PeopleRefused(
            "The name holds a character that nobody sees; type it anew.", "username"
        )
    if User.objects.filter(username__iexact=user.username).exists():
        raise PeopleRefused(_("That user name is taken."), "username")
    if password:
        try:
            validate_password(password, user)
        except ValidationError as error:
            raise PeopleRefused(" ".join(error.messages), "password") from None
        user.set_password(password)
    else:
        user.set_unusable_password()
    try:
        with transaction.atomic():
            user.save()
    except IntegrityError:
        raise PeopleRefused(_("That user name is taken."), "username") from None
    record("user.make", actor=actor or user, kind="user", key=user.pk, label=str(user))
    return user


@transaction.atomic
def switch_user(user: User, actor: User, is_active: bool) -> None:
    """Close an account, or open it again. Raises PeopleRefused for who may not be closed out.

    Both rows are locked: two superusers who close each other at once would leave none.
    """
    if user.pk == actor.pk:
        raise PeopleRefused(_("You cannot close your own account; another superuser can."))
    pair = User.objects.select_for_update(no_key=True).filter(pk__in=[user.pk, actor.pk])
    rows = {each.pk: each for each in pair.order_by("pk")}
    if not rows[actor.pk].is_active:
        raise PeopleRefused(_("Your own account has just been closed."))
    user = rows[user.pk]
    if user.is_active == is_active:
        return
    if not is_active:
        admin_of = user.memberships.filter(role=Role.ADMIN).order_by("project_id")
        for membership in admin_of:
            _refuse_last_admin(
                _locked(membership),
                _(
                    "%(user)s is the only admin of %(project)s; make somebody else an admin before "
                    "%(user)s is closed out."
                ),
            )
        _revoke_links(user, actor)
        end_sessions(user)
    user.is_active = is_active
    user.save(update_fields=["is_active"])
    action = "user.activate" if is_active else "user.deactivate"
    record(action, actor=actor, kind="user", key=user.pk, label=str(user))


def _locked(membership: Membership) -> Membership:
    """The row, with those of all admins of its project locked. Raises PeopleRefused when gone."""
    list(
        Membership.objects.select_for_update()
        .filter(project=membership.project_id, role=Role.ADMIN)
        .order_by("pk")
        .values_list("pk")
    )
    found = (
        Membership.objects.select_for_update(of=("self",))
        .select_related("project", "user")
        .filter(pk=membership.pk)
        .first()
    )
    if found is None:
        raise PeopleRefused(_("Somebody has just removed that member."))
    return found


def _revoke_links(user: User, actor: User, project: Project | None = None) -> None:
    """Make worthless what somebody has made to let people in: to one project, or to any."""
    links = Invitation.objects.filter(made_by=user, revoked_at=None).order_by("pk")
    if project is not None:
        links = links.filter(project=project)
    for link in links.select_for_update(of=("self",)).select_related("project"):
        link.revoked_at = timezone.now()
        link.save(update_fields=["revoked_at"])
        record(
            "invitation.revoke",
            actor=actor,
            kind="invitation",
            key=link.pk,
            label=str(link),
            project=link.project,
            after={"because": f"{user} made it"},
        )


def _refuse_last_admin(membership: Membership, words: str) -> None:
    """Raise PeopleRefused with `words` when nobody else would be left to manage the project."""
    admins = membership.project.memberships.filter(role=Role.ADMIN, user__is_active=True)
    if not admins.exclude(pk=membership.pk).exists():
        raise PeopleRefused(words % {"user": membership.user, "project": membership.project})


def _note(
    action: str,
    membership: Membership,
    actor: User | None,
    before: dict[str, str] | None = None,
    after: dict[str, str] | None = None,
) -> None:
    """An entry about a member."""
    record(
        action,
        actor=actor,
        kind="member",
        key=membership.user_id,
        label=str(membership.user),
        project=membership.project,
        before={name: str(value) for name, value in (before or {}).items()},
        after={name: str(value) for name, value in (after or {}).items()},
    )


def _note_project(
    action: str,
    project: Project,
    actor: User,
    before: dict[str, str] | None = None,
    after: dict[str, str] | None = None,
) -> None:
    """An entry about a project itself."""
    record(
        action,
        actor=actor,
        kind="project",
        key=project.pk,
        label=project.name,
        project=project,
        before=before,
        after=after,
    )
