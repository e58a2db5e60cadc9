"""People, the projects they work in, and the one-time links that sign them in."""

from __future__ import annotations

from django.contrib.auth.models import AbstractUser
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import pgettext_lazy

MAIN = "main"
"""Slug of the project that every installation has."""


class User(AbstractUser):
    """Somebody who can sign in."""

    def __str__(self) -> str:
        return self.get_username()


class LoginLink(models.Model):
    """A link that signs one person in, once. Only the hash of its token is stored."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="login_links")
    token_hash = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"link for {self.user} until {self.expires_at:%Y-%m-%d %H:%M}"


class Role(models.TextChoices):
    """What somebody is in a project. No plain order: see `webapp.accounts.roles`."""

    VIEWER = "viewer", pgettext_lazy("role", "Viewer")
    REVIEWER = "reviewer", pgettext_lazy("role", "Reviewer")
    CURATOR = "curator", pgettext_lazy("role", "Curator")
    RESEARCHER = "researcher", pgettext_lazy("role", "Researcher")
    ADMIN = "admin", pgettext_lazy("role", "Admin")

    @property
    def word(self) -> str:
        """Its name inside of a sentence."""
        return str(self.label).lower()


class ProjectQuerySet(models.QuerySet["Project"]):
    """The questions that are asked about projects."""

    def main(self) -> Project:
        """The project that every installation has; made where somebody emptied the table."""
        return self.get_or_create(slug=MAIN, defaults={"name": "Main"})[0]


class Project(models.Model):
    """Runs and datasets that the same people may see."""

    slug = models.SlugField(max_length=60, unique=True)
    """What it is called in addresses; never changes."""
    name = models.CharField(max_length=80)
    created_at = models.DateTimeField(default=timezone.now)
    archived_at = models.DateTimeField(null=True, blank=True)
    """When it was put away: it is still read, and nothing new is made in it."""

    objects = ProjectQuerySet.as_manager()

    class Meta:
        ordering = ("name", "pk")

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """One person's role in one project."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=12, choices=Role.choices)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ("user__username",)
        constraints = (
            models.UniqueConstraint(fields=("project", "user"), name="membership_one_role"),
            models.CheckConstraint(
                condition=models.Q(role__in=Role.values), name="membership_known_role"
            ),
        )

    def __str__(self) -> str:
        return f"{self.user} is {self.role} of {self.project}"


def main_project_pk() -> int:
    """Where a row belongs that was made without a project: the default of `Run` and `Dataset`.

    Migrations call it too, perhaps before later columns of the table are there: it reads the key.
    """
    found = Project.objects.filter(slug=MAIN).values_list("pk", flat=True).first()
    return found if found is not None else Project.objects.main().pk


class Invitation(models.Model):
    """A link that brings people into a project under a role. Only its hash is stored."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="invitations")
    role = models.CharField(max_length=12, choices=Role.choices)
    made_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    token_hash = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField()
    uses = models.PositiveIntegerField(default=1)
    """How many people it is for."""
    used = models.PositiveIntegerField(default=0)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-created_at",)

    def __str__(self) -> str:
        return f"invitation to {self.project} as {self.role}"

    @property
    def problem(self) -> str:
        """Why it works no more, for whoever holds it; empty while it works."""
        if self.revoked_at is not None:
            return _("This invitation was revoked.")
        if self.used >= self.uses:
            return _("This invitation has been used up.")
        if self.expires_at <= timezone.now():
            return _("This invitation has expired.")
        if self.project.archived_at is not None:
            return _("The project %(project)s is archived; nobody joins it any more.") % {
                "project": self.project
            }
        return ""
