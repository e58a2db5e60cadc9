"""Change who belongs to a project, make projects and accounts. Called by the pages of people.

Every change is one transaction with its entry in the audit log. A project keeps at least one active
admin: the rows of its admins are locked while one of them steps back, and the invitation links that
this one made are revoked, so that nobody comes back by a link of their own. Whether the caller may
do this at all is asked by the view, with `webapp.accounts.roles`.
"""

from __future__ import annotations

import re

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.text import slugify

from webapp.accounts.models import Membership, Project, Role, User
from webapp.accounts.refusals import PeopleRefused
from webapp.audit.record import record

LONGEST_PROJECT_NAME = 80
PLAIN = re.compile(r"[^\x00-\x1f\x7f]+")


@transaction.atomic
def add_member(project: Project, user: User, role: Role, actor: User | None) -> Membership:
    """Give somebody a role in a project. Raises PeopleRefused when they have one already."""
    membership, is_new = Membership.objects.get_or_create(
        project=project, user=user, defaults={"role": role}
    )
    if not is_new:
        raise PeopleRefused(
            f"{user} is {membership.role} of {project} already; change the role instead.",
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
        _refuse_last_admin(membership, "gets another role")
        _revoke_links(membership, actor)
    membership.role = role
    membership.save(update_fields=["role"])
    _note("member.role", membership, actor, before={"role": before}, after={"role": role})


@transaction.atomic
def remove_member(membership: Membership, actor: User) -> None:
    """Take somebody out of a project. Raises PeopleRefused for the last admin."""
    membership = _locked(membership)
    if membership.role == Role.ADMIN:
        _refuse_last_admin(membership, "leaves")
    _revoke_links(membership, actor)
    _note("member.remove", membership, actor, before={"role": membership.role})
    membership.delete()


@transaction.atomic
def make_project(name: str, actor: User) -> Project:
    """A new project with the actor as its admin. Raises PeopleRefused for a bad or taken name."""
    name = clean_project_name(name)
    slug = slugify(name)[:50] or "project"
    taken = set(Project.objects.filter(slug__startswith=slug).values_list("slug", flat=True))
    free = (f"{slug}-{n}" if n > 1 else slug for n in range(1, len(taken) + 2))
    try:
        with transaction.atomic():
            project = Project.objects.create(
                name=name, slug=next(each for each in free if each not in taken)
            )
    except IntegrityError:
        raise PeopleRefused("Somebody has just made that project; look again.", "name") from None
    _note_project("project.make", project, actor, after={"slug": project.slug})
    add_member(project, actor, Role.ADMIN, actor)
    return project


@transaction.atomic
def rename_project(project: Project, name: str, actor: User) -> None:
    """Another name; the slug in addresses stays. Raises PeopleRefused."""
    before, project.name = project.name, clean_project_name(name, project)
    project.save(update_fields=["name"])
    _note_project(
        "project.rename", project, actor, before={"name": before}, after={"name": project.name}
    )


@transaction.atomic
def archive_project(project: Project, actor: User) -> None:
    """Put a project away, or take it out again; nothing of it is deleted."""
    project.archived_at = None if project.archived_at else timezone.now()
    project.save(update_fields=["archived_at"])
    action = "project.archive" if project.archived_at else "project.unarchive"
    _note_project(action, project, actor)


def clean_project_name(name: str, own: Project | None = None) -> str:
    """A name fit for a project. Raises PeopleRefused."""
    name = " ".join(name.split())
    if not PLAIN.fullmatch(name):
        raise PeopleRefused("Give the project a name.", "name")
    if len(name) > LONGEST_PROJECT_NAME:
        raise PeopleRefused(f"At most {LONGEST_PROJECT_NAME} characters.", "name")
    others = Project.objects.filter(name__iexact=name)
    if (others.exclude(pk=own.pk) if own else others).exists():
        raise PeopleRefused("There is a project of that name.", "name")
    return name


@transaction.atomic
def make_user(username: str, password: str, actor: User | None) -> User:
    """A new account; without a password only a sign-in link opens it. Raises PeopleRefused."""
    user = User(username=User.normalize_username(username))
    try:
        user.clean_fields(exclude=["password"])
    except ValidationError as error:
        raise PeopleRefused(" ".join(error.messages), "username") from None
    if User.objects.filter(username__iexact=user.username).exists():
        raise PeopleRefused("That user name is taken.", "username")
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
        raise PeopleRefused("That user name is taken.", "username") from None
    record("user.make", actor=actor or user, kind="user", key=user.pk, label=str(user))
    return user


@transaction.atomic
def switch_user(user: User, actor: User) -> None:
    """Close an account, or open it again. Raises PeopleRefused for who may not be closed out."""
    user = User.objects.select_for_update().get(pk=user.pk)
    if user.pk == actor.pk:
        raise PeopleRefused("You cannot close your own account; another superuser can.")
    if user.is_active:
        for membership in user.memberships.filter(role=Role.ADMIN).select_related("project"):
            _refuse_last_admin(_locked(membership), "is closed out")
            _revoke_links(membership, actor)
    user.is_active = not user.is_active
    user.save(update_fields=["is_active"])
    action = "user.activate" if user.is_active else "user.deactivate"
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
        raise PeopleRefused("Somebody has just removed that member.")
    return found


def _revoke_links(membership: Membership, actor: User) -> None:
    """Make worthless what the member has made to let people in."""
    links = membership.project.invitations.filter(made_by=membership.user, revoked_at=None)
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
            after={"because": f"{membership.user} made it"},
        )


def _refuse_last_admin(membership: Membership, deed: str) -> None:
    """Raise PeopleRefused when nobody else would be left to manage the project."""
    admins = membership.project.memberships.filter(role=Role.ADMIN, user__is_active=True)
    if not admins.exclude(pk=membership.pk).exists():
        raise PeopleRefused(
            f"{membership.user} is the only admin of {membership.project}; make somebody else an "
            f"admin before {membership.user} {deed}."
        )


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
