"""Pages about people: members of a project, invitations, accounts, the audit log."""

from __future__ import annotations

from django.apps import AppConfig


class PeopleConfig(AppConfig):
    """Pages about people."""

    name = "webapp.people"
