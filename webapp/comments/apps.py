"""What people say about a run."""

from __future__ import annotations

from django.apps import AppConfig


class CommentsConfig(AppConfig):
    """What people say about a run."""

    name = "webapp.comments"
