"""Endpoints of people, and every message to them until it is delivered or given up.

A delivery is written in the transaction of the state move that it tells of, so neither exists
without the other. Sending is somebody else's business: `webapp.webhooks.services`.
"""

from __future__ import annotations

import base64
import secrets
import uuid

from django.db import models
from django.utils import timezone

from webapp.accounts.models import Project, User

SECRET_MARK = "whsec_"


def new_secret() -> str:
    """A fresh signing secret: 32 random bytes, spelled as standard-webhooks does."""
    return SECRET_MARK + base64.b64encode(secrets.token_bytes(32)).decode()


class Endpoint(models.Model):
    """An address that wants to know."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="webhooks")
    project = models.ForeignKey(
        Project, null=True, blank=True, on_delete=models.CASCADE, related_name="webhooks"
    )
    """All runs of this project, for one of its admins; null for the user's own runs."""
    url = models.URLField(max_length=500)
    secret = models.CharField(max_length=100, default=new_secret)
    """Both sides sign with it, so it cannot be stored as a hash."""
    kinds = models.JSONField(default=list)
    """Keys of `KINDS` that are sent."""
    created_at = models.DateTimeField(default=timezone.now)
    disabled_at = models.DateTimeField(null=True, blank=True)
    disabled_because = models.TextField(blank=True)

    class Meta:
        ordering = ("-created_at",)

    def __str__(self) -> str:
        return self.url


class Delivery(models.Model):
    """One message to one endpoint."""

    class State(models.TextChoices):
        """Waiting for its next try, delivered, or given up."""

        PENDING = "pending"
        DELIVERED = "delivered"
        GIVEN_UP = "given_up"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    """The header webhook-id: the same in every try, so that receivers can drop doubles."""
    endpoint = models.ForeignKey(Endpoint, on_delete=models.CASCADE, related_name="deliveries")
    kind = models.CharField(max_length=40)
    payload = models.JSONField()
    created_at = models.DateTimeField(default=timezone.now)
    state = models.CharField(max_length=10, choices=State.choices, default=State.PENDING)
    tries = models.PositiveSmallIntegerField(default=0)
    next_try_at = models.DateTimeField(default=timezone.now)
    """While a try is under way: when it counts as lost."""
    tried_at = models.DateTimeField(null=True, blank=True)
    status = models.PositiveSmallIntegerField(null=True, blank=True)
    """HTTP status of the last answer."""
    milliseconds = models.PositiveIntegerField(null=True, blank=True)
    """How long the last try took."""
    error = models.TextField(blank=True)
    """Why the last try failed."""

    class Meta:
        ordering = ("-created_at",)
        indexes = (
            models.Index(
                fields=("next_try_at",), condition=models.Q(state="pending"), name="webhooks_due"
            ),
            models.Index(fields=("endpoint", "-created_at"), name="webhooks_of_endpoint"),
        )

    def __str__(self) -> str:
        return f"{self.kind} to {self.endpoint_id}"
