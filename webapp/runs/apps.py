"""Runs from form to status."""

from __future__ import annotations

from django.apps import AppConfig


class RunsConfig(AppConfig):
    """Runs from form to status."""

    name = "webapp.runs"
