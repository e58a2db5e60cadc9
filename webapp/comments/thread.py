"""The comments of a run as its tab shows them. Called by the views."""

from __future__ import annotations

from typing import NamedTuple

from django.db.models import Count
from django.utils.safestring import SafeString

from webapp.accounts.models import User
from webapp.accounts.roles import Right, may
from webapp.comments.access import may_write, why_not_write
from webapp.comments.markdown import render_comment
from webapp.comments.models import Comment, CommentEdit
from webapp.runs.models import Run

LISTED = 500


class CommentView(NamedTuple):
    """One comment."""

    comment: Comment
    html: SafeString
    edits: int
    """How often it was edited."""
    is_own: bool
    may_delete: bool


class Thread(NamedTuple):
    """All comments of a run, the oldest first."""

    comments: list[CommentView]
    may_write: bool
    why_not: str
    names: list[str]
    """Members of the project, who can be mentioned."""


def read_thread(run: Run, user: User) -> Thread:
    """What the tab shows to this person."""
    members = run.project.memberships.filter(user__is_active=True)
    names = list(members.values_list("user__username", flat=True))
    writes, manages = may_write(user, run), may(user, Right.MANAGE, run.project)
    rows = Comment.objects.standing().filter(run=run).select_related("author")
    newest = list(rows.order_by("-pk")[:LISTED])
    edited = CommentEdit.objects.filter(comment__in=newest).values_list("comment")
    edits = dict(edited.annotate(n=Count("pk")).order_by())
    views = [
        CommentView(
            comment=comment,
            html=render_comment(comment.text, names),
            edits=edits.get(comment.pk, 0),
            is_own=writes and comment.author_id == user.pk,
            may_delete=manages or (writes and comment.author_id == user.pk),
        )
        for comment in reversed(newest)
    ]
    return Thread(views, writes, "" if writes else why_not_write(run), names)
