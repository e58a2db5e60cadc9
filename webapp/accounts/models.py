"""People and the one-time links that sign them in."""

from __future__ import annotations

from django.contrib.auth.models import AbstractUser
from django.db import models


class User(AbstractUser):
    """Somebody who can sign in."""

    def __str__(self) -> str:
        return self.get_username()


class LoginLink(models.Model):
    """A link that signs one person in, once. Only the hash of its token is stored."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="login_links")
    token_hash = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"link for {self.user} until {self.expires_at:%Y-%m-%d %H:%M}"
