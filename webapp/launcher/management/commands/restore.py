"""`manage.py restore FOLDER`: an empty installation becomes the one that was backed up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from webapp.launcher.console import Console
from webapp.launcher.restore import restore


class Command(BaseCommand):
    """Thin: `webapp.launcher.restore` does the work."""

    help = "Restore a backup into an installation that has nothing yet and does not run."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Where from."""
        parser.add_argument("folder", type=Path, help="as `manage.py backup` made it")

    def handle(self, **options: Any) -> None:
        """Restore and say what is there."""
        console = Console()
        made = restore(options["folder"], console.say)
        console.say(
            f"Restored {made.runs} runs and {made.datasets} datasets as of "
            f"{made.made_at:%Y-%m-%d %H:%M} UTC. Start with `manage.py up`."
        )
