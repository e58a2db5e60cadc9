"""The way in for programs: `/api/v1`, its tokens and its documents."""

from __future__ import annotations

from django.apps import AppConfig


class ApiConfig(AppConfig):
    """Tokens and answers that are remembered."""

    name = "webapp.api"
