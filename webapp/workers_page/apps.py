"""Hosts, devices and queues."""

from __future__ import annotations

from django.apps import AppConfig


class WorkersPageConfig(AppConfig):
    """Hosts, devices and queues."""

    name = "webapp.workers_page"
