"""What machines ask an installation: alive, ready, figures."""

from __future__ import annotations

from django.apps import AppConfig


class HealthConfig(AppConfig):
    """What machines ask an installation: alive, ready, figures."""

    name = "webapp.health"
