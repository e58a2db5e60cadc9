"""Sign-in, users and one-time links."""

from __future__ import annotations

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    """People."""

    name = "webapp.accounts"
