"""Uploaded data, checked and frozen."""

from __future__ import annotations

from django.apps import AppConfig


class DatasetsConfig(AppConfig):
    """Uploaded data, checked and frozen."""

    name = "webapp.datasets"
