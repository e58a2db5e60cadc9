"""Comments on a run, on one of its steps, or on what was sampled at it.

A rollout group is known by its names and not by its row: rows are made again when a run is read
anew from its directory, and the comment must survive that.
"""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from webapp.accounts.models import User
from webapp.runs.models import Run


class CommentQuerySet(models.QuerySet["Comment"]):
    """The questions that are asked about comments."""

    def standing(self) -> CommentQuerySet:
        """Not deleted."""
        return self.filter(deleted_at=None)


class Comment(models.Model):
    """What one person said once, as it stands now."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="comments")
    author = models.ForeignKey(User, on_delete=models.PROTECT, related_name="comments")
    text = models.TextField()
    """As it was typed: the subset of Markdown that `webapp.comments.markdown` knows."""
    step = models.PositiveBigIntegerField(null=True, blank=True)
    """The step that it is about; empty for the run as a whole."""
    group = models.CharField(max_length=200, blank=True)
    """`group_id` of a rollout group of that step."""
    completion = models.PositiveIntegerField(null=True, blank=True)
    """Index of one completion in the group."""
    created_at = models.DateTimeField(default=timezone.now)
    edited_at = models.DateTimeField(null=True, blank=True)
    deleted_at = models.DateTimeField(null=True, blank=True)
    deleted_by = models.CharField(max_length=150, blank=True)

    objects = CommentQuerySet.as_manager()

    class Meta:
        ordering = ("pk",)
        indexes = (models.Index(fields=("run", "id"), name="comments_of_run"),)

    def __str__(self) -> str:
        return f"comment of {self.author} on run #{self.run.number}"


class CommentEdit(models.Model):
    """What a comment said before it was edited."""

    comment = models.ForeignKey(Comment, on_delete=models.CASCADE, related_name="edits")
    text = models.TextField()
    until = models.DateTimeField(default=timezone.now)
    """When it stopped saying so."""

    class Meta:
        ordering = ("pk",)

    def __str__(self) -> str:
        return f"comment {self.comment_id} until {self.until:%Y-%m-%d %H:%M}"
