"""What `manage.py up` says on the terminal: a table of steps, then one line an event.

What would surprise: writing never raises. The terminal may be closed while the processes are
being stopped, and stopping them matters more.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

NAME_WIDTH = 20
SETUP_STAMP = "temper-setup.json"  # written by scripts/setup.py into the virtual environment


class Console:
    """Writes lines to standard output, one at a time."""

    def say(self, text: str) -> None:
        """One line."""
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.write(f"{text}\n")
            sys.stdout.flush()

    @contextlib.contextmanager
    def step(self, name: str) -> Iterator[list[str]]:
        """Time a step; what is put into the list is printed beside its seconds."""
        notes: list[str] = []
        started = time.monotonic()
        yield notes
        seconds = time.monotonic() - started
        self.say(f"  {name:<{NAME_WIDTH}} {seconds:6.1f} s  {', '.join(notes)}".rstrip())


def size_of(path: Path) -> int:
    """Bytes that a directory's files take; files that vanish meanwhile count nothing."""
    total = 0
    for root, _, names in os.walk(path):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(root, name)).st_size
    return total


def readable_size(size: int) -> str:
    """Bytes in the unit that keeps the number short."""
    if size >= 10**9:
        return f"{size / 10**9:.1f} GB"
    return f"{size / 10**6:.0f} MB"


def installed_size() -> str:
    """What the packages take, as the set-up measured it: walking them takes seconds."""
    try:
        stamp = json.loads((Path(sys.prefix) / SETUP_STAMP).read_text())
        return readable_size(int(stamp["bytes"]))
    except (OSError, ValueError, KeyError):
        return readable_size(size_of(Path(sys.prefix)))
