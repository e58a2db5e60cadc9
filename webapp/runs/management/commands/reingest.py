"""`manage.py reingest NUMBER...`: rebuild the index rows of runs from their directories."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from webapp.lifecycle import reingest
from webapp.runs.models import Run


class Command(BaseCommand):
    """The database is an index of run directories; this builds it anew."""

    help = "Rebuild metrics, rollouts, checkpoints and evaluations of runs from their directories."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Numbers of runs."""
        parser.add_argument("numbers", nargs="+", type=int, metavar="NUMBER", help="such as 12")

    def handle(self, *_: Any, numbers: list[int], **__: Any) -> None:
        """One run after the other; an unknown number is told before anything is done."""
        runs = {run.number: run for run in Run.objects.filter(number__in=numbers)}
        unknown = [number for number in numbers if number not in runs]
        if unknown:
            raise CommandError(f"There is no run {', '.join(f'#{n}' for n in unknown)}.")
        for number in numbers:
            run = runs[number]
            if not run.directory.is_dir():
                raise CommandError(f"Run #{number} has no directory {run.directory}.")
            attempts = reingest(run.pk)
            self.stdout.write(f"Run #{number}: {attempts} attempts read from {run.directory}.")
