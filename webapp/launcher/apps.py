"""Lets Django find the commands `up`, `doctor` and `login-link`; it has no models."""

from __future__ import annotations

from django.apps import AppConfig


class LauncherConfig(AppConfig):
    """Starting and checking an installation."""

    name = "webapp.launcher"
