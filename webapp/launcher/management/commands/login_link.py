"""`manage.py login-link [USER]`: print a fresh one-time sign-in link."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import OperationalError
from psycopg_pool import PoolTimeout

from webapp.accounts.models import User
from webapp.launcher.database_steps import login_url


class Command(BaseCommand):
    """Thin: `webapp.accounts.services` makes the link."""

    help = "Print a link that signs in once, within 15 minutes (default: the first administrator)."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Whom to sign in."""
        parser.add_argument("username", nargs="?", help="another user than the administrator")

    def handle(self, **options: Any) -> None:
        """Print the link and nothing else, so that it can be piped."""
        try:
            self.stdout.write(login_url(options["username"]))
        except User.DoesNotExist as error:
            raise CommandError(f"There is no user named {options['username']!r}.") from error
        except (OperationalError, PoolTimeout) as error:
            raise CommandError(
                f"The database does not answer: start `manage.py up` ({error})."
            ) from error
