"""Files of an installation are its user's alone: logs, runs and uploads hold what people wrote.

Called by `up.py` before anything is started; children inherit the mask. TEMPER_UMASK loosens it, as
for hosts that share one storage under different users of a group (`007`). The state directory
itself keeps its mode: the embedded PostgreSQL may run as another user below it.
"""

from __future__ import annotations

import os
from pathlib import Path

from webapp.launcher import value_rules
from webapp.launcher.errors import LauncherError

DEFAULT_UMASK = "077"
PRIVATE = ("beat", "exports", "glass", "logs", "models", "runs", "uploads")


def make_private(base: Path) -> None:
    """Set the mask and close what an earlier version left open. Raises LauncherError."""
    mask = chosen_umask()
    os.umask(mask)
    for name in PRIVATE:
        path = base / name
        if path.is_dir() and path.stat().st_uid == os.geteuid():
            path.chmod(0o777 & ~mask)


def chosen_umask() -> int:
    """TEMPER_UMASK as a number. Raises LauncherError for one that is none."""
    text = os.environ.get("TEMPER_UMASK") or DEFAULT_UMASK
    if wrong := value_rules.umask(text):
        raise LauncherError(f"TEMPER_UMASK {wrong}.")
    return int(text, 8)
