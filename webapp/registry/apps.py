"""Models: what runs start from, what they leave, and exports to take away."""

from __future__ import annotations

from django.apps import AppConfig


class RegistryConfig(AppConfig):
    """Base models, checkpoints, exports."""

    name = "webapp.registry"
