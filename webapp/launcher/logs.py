"""Log files of the processes that the launcher starts: one a process, the last few kept.

Called when a process starts. `open_log` moves NAME.log to NAME.1.log and so on first, so that a
crash's last words are still there after the restart that follows.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

KEPT = 5
TAIL_LINES = 15


def log_path(base: Path, name: str, generation: int = 0) -> Path:
    """The file of one process's log below data directory `base`; generation 0 is the current."""
    suffix = f".{generation}.log" if generation else ".log"
    return base / "logs" / f"{name}{suffix}"


def rotate(base: Path, name: str) -> None:
    """Shift the older generations by one and drop the oldest."""
    if not log_path(base, name).exists():
        return
    for generation in range(KEPT - 1, 0, -1):
        newer = log_path(base, name, generation - 1)
        if newer.exists():
            os.replace(newer, log_path(base, name, generation))


def open_log(base: Path, name: str) -> BinaryIO:
    """Rotate, then open a fresh log for appending."""
    log_path(base, name).parent.mkdir(parents=True, exist_ok=True)
    rotate(base, name)
    return log_path(base, name).open("ab")


def tail(base: Path, name: str, lines: int = TAIL_LINES) -> str:
    """The last lines of a process's current log."""
    try:
        text = log_path(base, name).read_text(errors="replace")
    except FileNotFoundError:
        return "(no log)"
    return "\n".join(text.splitlines()[-lines:])
