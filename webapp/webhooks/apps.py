"""Webhooks: signed messages to other programs when a run comes to an end or goes silent."""

from __future__ import annotations

from django.apps import AppConfig


class WebhooksConfig(AppConfig):
    """Endpoints and deliveries."""

    name = "webapp.webhooks"
