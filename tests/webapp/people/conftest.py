"""A project with an admin, who uses the browser, and what is written about it."""

from __future__ import annotations

import pytest
from django.test import Client

from tests.webapp.members import become
from webapp.accounts.models import Project, Role, User
from webapp.audit.models import AuditEntry


@pytest.fixture
def main(db: None) -> Project:
    """The project that every installation has."""
    return Project.objects.main()


@pytest.fixture
def admin(ada: User, browser: Client) -> Client:
    """The browser of Ada, an admin of the main project."""
    become(ada, Role.ADMIN)
    return browser


@pytest.fixture
def root(db: None) -> Client:
    """The browser of a superuser."""
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    return client


def actions() -> list[str]:
    """What the audit log has, sign-ins left out, the oldest first."""
    entries = AuditEntry.objects.exclude(action__startswith="account.").order_by("pk")
    return list(entries.values_list("action", flat=True))
