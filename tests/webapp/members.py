"""Giving people of a test their role in a project."""

from __future__ import annotations

from webapp.accounts.models import Membership, Project, Role, User


def become(user: User, role: Role | None, project: Project | None = None) -> None:
    """The user's one role in the project, the main one by default; None takes it away."""
    project = project or Project.objects.main()
    Membership.objects.filter(user=user, project=project).delete()
    if role is not None:
        Membership.objects.create(user=user, project=project, role=role)
