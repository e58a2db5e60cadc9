"""One `manage.py up` per data directory. Held for as long as it runs; the kernel lets go of it."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from webapp.launcher.errors import LauncherError


@contextlib.contextmanager
def instance_lock(base: Path) -> Iterator[None]:
    """Hold the lock, or say who holds it."""
    base.mkdir(parents=True, exist_ok=True)
    with (base / "up.lock").open("a+") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            handle.seek(0)
            holder = handle.read().strip() or "unknown"
            raise LauncherError(
                f"Temper already runs in {base} (process {holder}). Stop that one with Ctrl+C, or "
                "set TEMPER_DATA_DIR to another directory for a second installation."
            ) from error
        handle.truncate(0)
        handle.write(str(os.getpid()))
        handle.flush()
        yield


def lock_holder(base: Path) -> int | None:
    """The process that runs `up` in this data directory now, if any."""
    try:
        handle = (base / "up.lock").open("r+")
    except OSError:
        return None
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            text = handle.read().strip()
            return int(text) if text.isdigit() else None
    return None
