"""The project that somebody looks at, and what they may do in theirs: the rail and list pages ask.

The choice stands in the address (`?project=main`), else in the session; without one, pages show
all of somebody's projects together.
"""

from __future__ import annotations

from functools import cached_property

from django.http import HttpRequest

from webapp.accounts.models import Membership, Project, User
from webapp.accounts.roles import ROLES_WITH, WHEN_ARCHIVED, Right, projects_where

CHOICE = "project"
"""Name of the choice in the address and in the session."""


class Standing:
    """What one person may do where, read with one query when first asked."""

    def __init__(self, request: HttpRequest) -> None:
        self.request = request
        self.user = getattr(request, "user", None)

    @cached_property
    def roles(self) -> list[tuple[Project, str]]:
        """Every project that the person may see, with their role; a superuser's is `admin`."""
        if not isinstance(self.user, User):
            return []
        if self.user.is_superuser:
            return [(p, "admin") for p in projects_where(self.user, Right.VIEW)]
        found = Membership.objects.filter(user=self.user).select_related("project")
        return [(each.project, each.role) for each in found.order_by("project__name", "project")]

    @property
    def projects(self) -> list[Project]:
        """The projects that the person may see."""
        return [project for project, _ in self.roles]

    @cached_property
    def current(self) -> Project | None:
        """The one that was chosen; None for all of them. What one may not see is no choice."""
        slug = self.request.GET.get(CHOICE) or self.request.session.get(CHOICE, "")
        if len(self.projects) == 1:
            return None
        return next((project for project in self.projects if project.slug == slug), None)

    @property
    def label(self) -> str:
        """What the switcher says."""
        if self.current is not None:
            return self.current.name
        return self.projects[0].name if len(self.projects) == 1 else "All projects"

    def may(self, right: Right) -> bool:
        """Whether the person has the right in the chosen project, or in any when none is chosen."""
        return any(
            role in ROLES_WITH[right]
            and (project.archived_at is None or right in WHEN_ARCHIVED)
            and (self.current is None or project == self.current)
            for project, role in self.roles
        )

    @property
    def may_launch(self) -> bool:
        """Whether to offer a new run."""
        return self.may(Right.LAUNCH)

    @property
    def may_add_datasets(self) -> bool:
        """Whether to offer an upload."""
        return self.may(Right.ADD_DATASETS)

    @property
    def home(self) -> Project | None:
        """The project whose people the rail leads to."""
        return self.current or next(iter(self.projects), None)


def current_project(request: HttpRequest) -> Project | None:
    """The project that lists are narrowed to; None for all that the person may see."""
    return Standing(request).current
