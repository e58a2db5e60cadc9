"""One training step, looked at token by token."""

from __future__ import annotations

from django.apps import AppConfig


class GlassConfig(AppConfig):
    """One training step, looked at token by token."""

    name = "webapp.glass"
