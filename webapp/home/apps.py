"""The page that one comes home to."""

from __future__ import annotations

from django.apps import AppConfig


class HomeConfig(AppConfig):
    """The page that one comes home to."""

    name = "webapp.home"
