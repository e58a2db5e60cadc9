"""Which code this is: a hash of its Python sources, the same for the same code on every host.

Called where hosts must agree, and noted in backups. A commit's name would not do: a checkout may be
edited, or may be no checkout at all.
"""

from __future__ import annotations

import functools
import hashlib

from webapp.launcher.paths import REPOSITORY

PACKAGES = ("training_core", "webapp", "workers")
SHOWN_DIGITS = 12


@functools.cache
def code_version() -> str:
    """A short hash of paths and contents of all Python files and of the pinned packages."""
    files = [path for name in PACKAGES for path in (REPOSITORY / name).rglob("*.py")]
    digest = hashlib.sha256()
    for path in (*sorted(files), REPOSITORY / "requirements.txt"):
        digest.update(f"{path.relative_to(REPOSITORY)}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:SHOWN_DIGITS]
