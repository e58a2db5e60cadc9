"""Who may read, write and delete comments: the only way in which a view gets one.

Who sees a run reads its comments. Reviewers and above write; one edits one's own; one deletes one's
own, and an admin of the project everybody's.
"""

from __future__ import annotations

from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.http import Http404
from django.utils.translation import gettext as _

from webapp.accounts.models import User
from webapp.accounts.roles import Right, may, who_may
from webapp.comments.models import Comment, CommentQuerySet
from webapp.runs.access import get_run_for_user
from webapp.runs.models import Run


def comments_for(user: User | AnonymousUser) -> CommentQuerySet:
    """Comments that stand, on runs that the user may see."""
    return Comment.objects.standing().filter(run__in=Run.objects.visible_to(user))


def may_write(user: User | AnonymousUser, run: Run) -> bool:
    """Whether the page offers a box to write in."""
    return may(user, Right.COMMENT, run.project)


def why_not_write(run: Run) -> str:
    """The sentence for somebody who reads and does not write."""
    if run.project.archived_at is not None:
        text = _("The project %(project)s is archived: nobody comments in it any more.")
        return text % {"project": run.project}
    return _("Comments are written by %(who)s.") % {"who": who_may(Right.COMMENT, run.project)}


def get_commentable_run(user: User | AnonymousUser, number: int) -> Run:
    """The run, to write about it. Raises Http404, or PermissionDenied with who can."""
    run = get_run_for_user(user, number)
    if not may_write(user, run):
        raise PermissionDenied(why_not_write(run))
    return run


def get_own_comment(user: User | AnonymousUser, number: int, pk: int) -> Comment:
    """The comment, to edit it. Raises Http404, or PermissionDenied for somebody else's."""
    comment = _get(user, number, pk)
    if comment.author_id != user.pk:
        text = _("%(author)s wrote this; only they edit it.")
        raise PermissionDenied(text % {"author": comment.author})
    if not may_write(user, comment.run):
        raise PermissionDenied(why_not_write(comment.run))
    return comment


def get_deletable_comment(user: User | AnonymousUser, number: int, pk: int) -> Comment:
    """The comment, to delete it. Raises Http404, or PermissionDenied with who can."""
    comment = _get(user, number, pk)
    is_own = comment.author_id == user.pk and may_write(user, comment.run)
    if not is_own and not may(user, Right.MANAGE, comment.run.project):
        values = {"author": comment.author, "who": who_may(Right.MANAGE, comment.run.project)}
        raise PermissionDenied(_("%(author)s wrote this; only they or %(who)s delete it.") % values)
    return comment


def _get(user: User | AnonymousUser, number: int, pk: int) -> Comment:
    """The comment of a run that the user may see. Raises Http404."""
    run = get_run_for_user(user, number)
    rows = Comment.objects.standing().select_related("author", "run__project")
    comment = rows.filter(run=run, pk=pk).first()
    if comment is None:
        raise Http404(_("There is no such comment."))
    return comment
