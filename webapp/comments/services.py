"""Write, edit and delete comments. Called by the views; each change is told to open pages.

Who may do it is asked by `webapp.comments.access`.
"""

from __future__ import annotations

import re

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from webapp.accounts.models import User
from webapp.audit.record import record
from webapp.comments.models import Comment, CommentEdit
from webapp.comments.refusals import CommentRefused
from webapp.metrics import live
from webapp.rollouts.models import RolloutGroup
from webapp.runs.models import Run

LONGEST = 10_000
LAST_STEP = 2**53
_WHOLE = re.compile(r"[0-9]{1,16}")


@transaction.atomic
def add_comment(
    run: Run, author: User, text: str, *, step: str = "", group: str = "", completion: str = ""
) -> Comment:
    """Say something about a run, as typed into a form. Raises CommentRefused."""
    place = _place(run, step.strip(), group, completion.strip())
    comment = Comment.objects.create(run=run, author=author, text=clean_text(text), **place)
    _tell(run)
    return comment


@transaction.atomic
def edit_comment(comment: Comment, text: str) -> None:
    """Say it otherwise; what it said before is kept. Raises CommentRefused."""
    comment = _locked(comment)
    text = clean_text(text)
    if text == comment.text:
        return
    CommentEdit.objects.create(comment=comment, text=comment.text)
    comment.text, comment.edited_at = text, timezone.now()
    comment.save(update_fields=["text", "edited_at"])
    _tell(comment.run)


@transaction.atomic
def delete_comment(comment: Comment, actor: User) -> None:
    """Take it from the page, with its history. Raises CommentRefused when it is gone already."""
    comment = _locked(comment)
    record(
        "comment.delete",
        actor=actor,
        kind="comment",
        key=comment.pk,
        label=f"{comment.author} on #{comment.run.number} {comment.run.name}",
        project=comment.run.project,
    )
    comment.edits.all().delete()
    comment.text, comment.deleted_at = "", timezone.now()
    comment.deleted_by = actor.get_username()
    comment.save(update_fields=["text", "deleted_at", "deleted_by"])
    _tell(comment.run)


def clean_text(text: str) -> str:
    """A text fit to be kept. Raises CommentRefused."""
    text = text.replace("\r\n", "\n").strip()
    if not text:
        raise CommentRefused(_("Write something first."))
    if "\0" in text:
        raise CommentRefused(_("The text holds a NUL character; take it out."))
    if len(text) > LONGEST:
        most, size = f"{LONGEST:,}", f"{len(text):,}"
        words = _("At most %(most)s characters; this has %(size)s.")
        raise CommentRefused(words % {"most": most, "size": size})
    return text


def _place(run: Run, step: str, group: str, completion: str) -> dict[str, int | str | None]:
    """What the comment is about. Raises CommentRefused for what the run does not have."""
    if not step:
        if group or completion:
            raise CommentRefused(_("A group of rollouts belongs to a step; name it."), "step")
        return {}
    if not _WHOLE.fullmatch(step) or int(step) > max(run.total_steps, run.step):
        words = _("The step is a whole number from 0 to %(last)s, or nothing.")
        raise CommentRefused(words % {"last": f"{max(run.total_steps, run.step):,}"}, "step")
    place: dict[str, int | str | None] = {"step": int(step)}
    if not group:
        return place
    groups = RolloutGroup.objects.filter(run=run, step=int(step), group_id=group)
    found = groups.first() if "\0" not in group else None
    if found is None:
        raise CommentRefused(_("The run has no such group of rollouts at that step."), "group")
    place["group"] = group
    if completion:
        if not _WHOLE.fullmatch(completion) or int(completion) >= found.size:
            words = _("The group has completions 0 to %(last)s.") % {"last": found.size - 1}
            raise CommentRefused(words, "completion")
        place["completion"] = int(completion)
    return place


def _locked(comment: Comment) -> Comment:
    """The row, locked. Raises CommentRefused when it was deleted meanwhile."""
    rows = Comment.objects.select_for_update(of=("self",)).standing()
    found = rows.select_related("run__project", "author").filter(pk=comment.pk).first()
    if found is None:
        raise CommentRefused(_("The comment has just been deleted."))
    return found


def _tell(run: Run) -> None:
    """A hint for open pages of the run, with how many comments there are now."""
    count = Comment.objects.standing().filter(run=run).count()
    live.publish(live.run_topic(run.pk), "comment", {"count": count})
