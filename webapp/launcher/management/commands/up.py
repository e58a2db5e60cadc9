"""`manage.py up`: start everything, stop everything on Ctrl+C."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from webapp.launcher.up import Up


class Command(BaseCommand):
    """Thin: `webapp.launcher.up` does the work."""

    help = "Start PostgreSQL, Valkey, web server, workers and beat; Ctrl+C stops them all."
    requires_system_checks: list[str] = []  # they would need the database that this starts

    def add_arguments(self, parser: CommandParser) -> None:
        """The one option."""
        parser.add_argument(
            "--workers-only",
            action="store_true",
            help="serve queues of an installation whose DATABASE_URL and REDIS_URL are given",
        )

    def handle(self, **options: Any) -> None:
        """Run until stopped."""
        Up(workers_only=options["workers_only"]).run()
