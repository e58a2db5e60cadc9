"""The metric store and the curves it serves."""

from __future__ import annotations

from django.apps import AppConfig


class MetricsConfig(AppConfig):
    """The metric store and the curves it serves."""

    name = "webapp.metrics"
