"""What others said to somebody lately: comments that name them, and comments on their own runs.

Called by `webapp.home.overview`. Only of runs that the person may see.
"""

from __future__ import annotations

from datetime import timedelta
from typing import NamedTuple

from django.db.models import Q
from django.utils import timezone

from webapp.accounts.models import Project, User
from webapp.comments.access import comments_for
from webapp.comments.markdown import mentioned
from webapp.comments.models import Comment

LATELY = timedelta(days=7)
LISTED = 5
LOOKED_AT = 50
"""A name may stand in a text without being mentioned: `@ada` in `@adalbert`."""


class Said(NamedTuple):
    """One comment that concerns the person."""

    comment: Comment
    names_you: bool
    """Whether it mentions them; else it is on a run of theirs."""


def read_said(user: User, project: Project | None) -> list[Said]:
    """The newest of a week that somebody else wrote."""
    since, name = timezone.now() - LATELY, user.get_username()
    rows = comments_for(user).filter(created_at__gte=since).exclude(author=user)
    if project is not None:
        rows = rows.filter(run__project=project)
    rows = rows.filter(Q(run__owner=user) | Q(text__icontains=f"@{name}"))
    rows = rows.select_related("author", "run").order_by("-pk").defer("run__spec")
    found = [Said(comment, bool(mentioned(comment.text, [name]))) for comment in rows[:LOOKED_AT]]
    concerning = [it for it in found if it.names_you or it.comment.run.owner_id == user.pk]
    return concerning[:LISTED]
