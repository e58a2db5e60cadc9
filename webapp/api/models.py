"""Tokens of programs, and answers that are given again when a request is sent twice."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from webapp.accounts.models import User


class ApiTokenQuerySet(models.QuerySet["ApiToken"]):
    """The questions that are asked about tokens."""

    def valid(self) -> ApiTokenQuerySet:
        """Neither revoked nor past their end, of people who may still sign in."""
        return self.filter(revoked_at=None, expires_at__gt=timezone.now(), user__is_active=True)


class ApiToken(models.Model):
    """A secret that lets a program act for a person. Only the secret's hash is stored."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=80)
    """What it is for, in its owner's words."""
    prefix = models.CharField(max_length=20)
    """First characters of the secret, so that its owner knows which one it is."""
    token_hash = models.CharField(max_length=64, unique=True)
    scopes = models.JSONField(default=list)
    """Values of `Scope`."""
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True, blank=True)
    """Exact to a minute."""
    last_used_from = models.GenericIPAddressField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    objects = ApiTokenQuerySet.as_manager()

    class Meta:
        ordering = ("-created_at",)

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    @property
    def state(self) -> str:
        """valid, expired or revoked."""
        if self.revoked_at is not None:
            return "revoked"
        return "valid" if self.expires_at > timezone.now() else "expired"


class RememberedAnswer(models.Model):
    """What a request with an Idempotency-Key led to, so that sending it again does it once."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=64)
    fingerprint = models.CharField(max_length=64)
    """Hash of method, address and body: another request must not use the same key."""
    status = models.PositiveSmallIntegerField(null=True, blank=True)
    """HTTP status of the answer; null while the request is still being worked on."""
    body = models.JSONField(default=dict)
    begun_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("user", "key"), name="one_answer_a_key"),)
        indexes = (models.Index(fields=("begun_at",), name="answers_by_age"),)

    def __str__(self) -> str:
        return f"answer to {self.key}"
