"""The comments of a run as its tab shows them. Called by the views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from django.db.models import Count
from django.utils.safestring import SafeString

from webapp.accounts.models import User
from webapp.accounts.roles import Right, may
from webapp.comments.access import may_write, why_not_write
from webapp.comments.markdown import mentioned, render_comment
from webapp.comments.models import Comment, CommentEdit
from webapp.rollouts.models import RolloutGroup
from webapp.runs.models import Run

PAGE_SIZE = 100


class CommentView(NamedTuple):
    """One comment."""

    comment: Comment
    html: SafeString
    edits: int
    """How often it was edited."""
    group: int | None
    """Key of the group of rollouts that it is about, as the rollouts tab knows it now."""
    is_own: bool
    may_delete: bool
    mentions_reader: bool


class Thread(NamedTuple):
    """One page of a run's comments, the oldest first."""

    comments: list[CommentView]
    earlier: int | None
    """The page before this one ends before that comment; None when nothing was said before."""
    is_newest: bool
    may_write: bool
    why_not: str


def read_thread(run: Run, user: User, before: int | None = None) -> Thread:
    """What the tab shows to this person: the newest comments, or those before one of them."""
    members = run.project.memberships.filter(user__is_active=True)
    names = frozenset(members.values_list("user__username", flat=True))
    writes, manages = may_write(user, run), may(user, Right.MANAGE, run.project)
    rows = Comment.objects.standing().filter(run=run).select_related("author")
    if before is not None:
        rows = rows.filter(pk__lt=before)
    found = list(rows.order_by("-pk")[: PAGE_SIZE + 1])
    shown = found[PAGE_SIZE - 1 :: -1]
    edits, groups = _edits_of(shown), _groups_of(run, shown)
    views = [
        CommentView(
            comment=comment,
            html=render_comment(comment.text, names),
            edits=edits.get(comment.pk, 0),
            group=groups.get((comment.step, comment.group)),
            is_own=writes and comment.author_id == user.pk,
            may_delete=manages or (writes and comment.author_id == user.pk),
            mentions_reader=user.username in mentioned(comment.text, names),
        )
        for comment in shown
    ]
    earlier = shown[0].pk if len(found) > PAGE_SIZE else None
    return Thread(views, earlier, before is None, writes, "" if writes else why_not_write(run))


def _edits_of(comments: Sequence[Comment]) -> dict[int, int]:
    """How often each was edited."""
    rows = CommentEdit.objects.filter(comment__in=comments).values_list("comment")
    return dict(rows.annotate(n=Count("pk")).order_by())


def _groups_of(run: Run, comments: Sequence[Comment]) -> dict[tuple[int | None, str], int]:
    """Today's keys of the groups that are talked about, by step and name."""
    names = {comment.group for comment in comments if comment.group}
    rows = RolloutGroup.objects.filter(run=run, group_id__in=names, superseded=False)
    found = rows.values_list("step", "group_id", "pk") if names else []
    return {(step, name): pk for step, name, pk in found}
