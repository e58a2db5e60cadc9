"""`temper export`: have a checkpoint made into a model folder, wait for it, fetch it."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from temper_client.client import Temper
from temper_client.errors import EndedBadlyError
from temper_client.fetching import check_target
from temper_client.models import Export
from temper_client.words import plain, size

EVERY_S = 0.5
Show = Callable[[str, int, int], None]
"""What is done, so many bytes of so many."""


def export_checkpoint(temper: Temper, asked: argparse.Namespace, console: Console) -> None:
    """Ask for it, and unless told otherwise wait and fetch it. Raises TemperError."""
    if asked.output is not None:
        check_target(asked.output)
    export = temper.export(asked.run, asked.checkpoint, asked.dtype, key=asked.key)
    what = f"step {export.step:,} of run #{export.run} in {export.dtype}"
    console.print(f"Export of {what} is {export.state}: {export.id}", soft_wrap=True)
    if asked.no_wait:
        return
    folder = asked.output or Path(export.folder)
    check_target(folder)
    with _progress(console) as show:
        export = _wait(temper, export, show)
        temper.download(export, folder, lambda done: show("Fetching", done, export.size_bytes))
    words = f"{folder}: {len(export.files)} files, {size(export.size_bytes)}; every hash agrees"
    console.print(words, soft_wrap=True)


def _wait(temper: Temper, export: Export, show: Show) -> Export:
    """Until it is ready. Raises EndedBadlyError for one that came to nothing."""
    while export.state in {"queued", "running"}:
        show(plain(export.doing) or "Waiting for a worker", export.done, export.total)
        time.sleep(EVERY_S)
        export = temper.export_(export.id)
    if export.state != "ready":
        words = [f"The export is {export.state}.", export.message, export.advice]
        raise EndedBadlyError(" ".join(plain(word) for word in words if word))
    return export


@contextmanager
def _progress(console: Console) -> Iterator[Show]:
    """A bar in a terminal; elsewhere a line when something else is done."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bars:
        task = bars.add_task("", total=None)
        shown = ""

        def show(words: str, done: int, total: int) -> None:
            nonlocal shown
            if words != shown:
                shown = words
                bars.reset(task, description=words, total=total or None)
                if not console.is_terminal:
                    console.print(f"{words}…", soft_wrap=True)
            bars.update(task, completed=done, total=total or None)

        yield show
