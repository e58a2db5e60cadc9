"""Find anything: pages, deeds, runs, datasets and presets from one field."""

from __future__ import annotations

from django.apps import AppConfig


class SearchConfig(AppConfig):
    """Find anything."""

    name = "webapp.search"
