"""`manage.py doctor [--json]`: what is missing, and how to mend it."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from webapp.launcher.checks_machine import MACHINE_CHECKS
from webapp.launcher.checks_state import STATE_CHECKS
from webapp.launcher.diagnosis import as_json, as_table, has_failure, run_checks


class Command(BaseCommand):
    """Thin: the checks live in `webapp.launcher`."""

    help = "Check this machine and installation; exit status 1 when something must be mended."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """The form of the answer."""
        parser.add_argument("--json", action="store_true", help="print a list of findings")

    def handle(self, **options: Any) -> None:
        """Print the findings."""
        findings = run_checks([*MACHINE_CHECKS, *STATE_CHECKS])
        self.stdout.write(as_json(findings) if options["json"] else as_table(findings))
        if has_failure(findings):
            raise SystemExit(1)
