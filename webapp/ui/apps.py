"""What all pages share."""

from __future__ import annotations

from django.apps import AppConfig


class UiConfig(AppConfig):
    """What all pages share."""

    name = "webapp.ui"
