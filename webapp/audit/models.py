"""The audit log: rows that are added and never changed; a trigger in the database sees to it.

An entry holds names and numbers as they were, and no foreign keys: what it tells of may be deleted
or renamed later, and the entry must not change with it.
"""

from __future__ import annotations

from django.db import models
from django.utils import timezone


class AuditEntry(models.Model):
    """One thing that somebody did."""

    at = models.DateTimeField(default=timezone.now)
    action = models.CharField(max_length=40)
    """Key of `webapp.audit.actions.ACTIONS`."""
    actor = models.CharField(max_length=150, blank=True)
    """User name; empty for somebody who is not signed in."""
    actor_key = models.BigIntegerField(null=True)
    project_key = models.BigIntegerField(null=True)
    project = models.CharField(max_length=80, blank=True)
    """Name of the project as it was."""
    kind = models.CharField(max_length=20)
    """What was acted on: `run`, `import`, `export`, `user`, `member`, `invitation`, `token`…"""
    key = models.CharField(max_length=64, blank=True)
    """Its primary key."""
    label = models.CharField(max_length=200)
    """What people called it then."""
    before = models.JSONField(default=dict)
    after = models.JSONField(default=dict)
    address = models.GenericIPAddressField(null=True)
    """Where the request came from; null in a worker or a command."""
    token = models.CharField(max_length=110, blank=True)
    """Name and beginning of the API token that did it for the actor; empty where none did."""

    class Meta:
        ordering = ("-pk",)
        indexes = (
            models.Index(fields=("project_key", "-id"), name="audit_of_project"),
            models.Index(fields=("actor", "-id"), name="audit_of_actor"),
        )

    def __str__(self) -> str:
        return f"{self.actor or 'somebody'} {self.action} {self.label}"
