"""`manage.py seed`: the first administrator. Does nothing where there is one."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from webapp.accounts.services import ensure_owner


class Command(BaseCommand):
    """First data of an installation."""

    help = "Make the first administrator; does nothing where there is one."

    def handle(self, *_: Any, **__: Any) -> None:
        """Make the owner."""
        owner = ensure_owner()
        self.stdout.write(f"The owner is {owner}.")
