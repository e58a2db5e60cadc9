"""Held-out results."""

from __future__ import annotations

from django.apps import AppConfig


class EvaluationConfig(AppConfig):
    """Held-out results."""

    name = "webapp.evaluation"
