"""The project that somebody looks at, and what they may do in theirs: pages ask `standing_of`.

The choice stands in the address (`?project=main`), else in the session; without one, pages show
all of somebody's projects together. For drawing alone: what is handed out or changed is judged by
the `access` modules.
"""

from __future__ import annotations

from functools import cached_property

from django.http import HttpRequest
from django.utils.translation import gettext as _

from webapp.accounts.models import Membership, Project, User
from webapp.accounts.roles import ROLES_WITH, WHEN_ARCHIVED, Right, projects_where

CHOICE = "project"
"""Name of the choice in the address and in the session."""


class Standing:
    """What one person may do where, read with one query when first asked.

    Get a request's with `standing_of`: it is kept there, so a page has one.
    """

    def __init__(self, request: HttpRequest) -> None:
        self.request = request
        self.user = getattr(request, "user", None)

    @cached_property
    def roles(self) -> list[tuple[Project, str]]:
        """Every project that the person may see, with their role; a superuser's is `admin`."""
        if not isinstance(self.user, User) or not self.user.is_active:
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
        if len(self.projects) < 2:
            return None
        slug = self.request.GET.get(CHOICE) or self.request.session.get(CHOICE, "")
        return next((project for project in self.projects if project.slug == slug), None)

    @property
    def label(self) -> str:
        """What the switcher says."""
        if self.current is not None:
            return self.current.name
        return self.projects[0].name if len(self.projects) == 1 else _("All projects")

    def where(self, right: Right) -> list[Project]:
        """The projects in which the person has the right."""
        return [
            project
            for project, role in self.roles
            if role in ROLES_WITH[right] and (project.archived_at is None or right in WHEN_ARCHIVED)
        ]

    def may(self, right: Right) -> bool:
        """Whether the person has the right in the chosen project, or in any when none is chosen."""
        return any(self.current in (None, project) for project in self.where(right))

    @property
    def launches_in(self) -> set[int]:
        """Keys of the projects in which the person launches runs."""
        return {project.pk for project in self.where(Right.LAUNCH)}

    @property
    def exports_in(self) -> set[int]:
        """Keys of the projects in which the person makes checkpoints into model folders."""
        return {project.pk for project in self.where(Right.EXPORT)}

    @property
    def adds_datasets_in(self) -> set[int]:
        """Keys of the projects to which the person adds datasets."""
        return {project.pk for project in self.where(Right.ADD_DATASETS)}

    @property
    def comments_in(self) -> set[int]:
        """Keys of the projects in which the person writes comments."""
        return {project.pk for project in self.where(Right.COMMENT)}

    @property
    def names_projects(self) -> bool:
        """Whether lists must say which project a thing belongs to."""
        return len(self.projects) > 1 and self.current is None

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


def standing_of(request: HttpRequest) -> Standing:
    """The request's own: read once, however many ask."""
    found: Standing = vars(request).setdefault("_standing", Standing(request))
    return found


def current_project(request: HttpRequest) -> Project | None:
    """The project that lists are narrowed to; None for all that the person may see."""
    return standing_of(request).current
