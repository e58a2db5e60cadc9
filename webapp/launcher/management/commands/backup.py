"""`manage.py backup FOLDER`: database and files, while runs go on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from webapp.launcher.backup import take_backup
from webapp.launcher.console import Console, readable_size


class Command(BaseCommand):
    """Thin: `webapp.launcher.backup` does the work."""

    help = "Back up database, runs, uploads and key to a new folder; everything may run meanwhile."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Where to."""
        parser.add_argument("folder", type=Path, help="does not exist yet")
        parser.add_argument(
            "--with-models", action="store_true", help="prepared models too, which `up` makes again"
        )

    def handle(self, **options: Any) -> None:
        """Back up and say what it holds."""
        console = Console()
        made = take_backup(options["folder"], console.say, with_models=options["with_models"])
        size = readable_size(sum(entry.size_bytes for entry in made.files.values()))
        console.say(
            f"{options['folder']} holds {made.runs} runs and {made.datasets} datasets, {size}. "
            f"`manage.py restore {options['folder']}` brings them back."
        )
