"""Completions with their rewards and reasons."""

from __future__ import annotations

from django.apps import AppConfig


class RolloutsConfig(AppConfig):
    """Completions with their rewards and reasons."""

    name = "webapp.rollouts"
