"""pg_dump and pg_restore: which ones to use, and how to call them.

Called by `backup.py` and `restore.py`. The embedded PostgreSQL brings its own; for an external one
those on PATH come first, since the wheel's cannot speak TLS. What would surprise: a password goes
into the environment of the program, never on its command line, which all users of a machine see.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from webapp.launcher import paths
from webapp.launcher.errors import LauncherError
from webapp.launcher.postgres_files import binary_dir

MAJOR = re.compile(r"(\d+)(\.\d+)*\b")


def run_program(name: str, server_major: int, *options: str) -> None:
    """Run pg_dump or pg_restore against the installation's database. Raises LauncherError."""
    program = find_program(name, server_major)
    connection = conninfo_to_dict(paths.database_url())
    password = connection.pop("password", None)
    secret = {"PGPASSWORD": str(password)} if password else {}
    done = subprocess.run(
        [str(program), "--no-password", *options, f"--dbname={make_conninfo('', **connection)}"],
        env={**os.environ, **secret},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode != 0:
        raise LauncherError(f"{program} failed:\n{done.stderr.strip()}")


def find_program(name: str, server_major: int) -> Path:
    """One that is not older than the server. Raises LauncherError when there is none."""
    found = {}
    for program in _candidates(name):
        found[program] = major_of(program)
        if found[program] >= server_major:
            return program
    seen = ", ".join(f"{program} is {major}" for program, major in found.items()) or "none is here"
    raise LauncherError(
        f"The server is PostgreSQL {server_major} and needs a {name} of that version or a newer "
        f"one on PATH ({seen}). Install the client programs of PostgreSQL {server_major}."
    )


def major_of(program: Path) -> int:
    """The major version of a program; 0 when it does not run."""
    try:
        told = subprocess.run(
            [str(program), "--version"], capture_output=True, text=True, check=False
        ).stdout
    except OSError:
        return 0
    match = MAJOR.search(told)
    return int(match[1]) if match else 0


def _candidates(name: str) -> list[Path]:
    """Where to look, in order."""
    own = binary_dir() / name
    on_path = shutil.which(name)
    if paths.uses_embedded_postgres() or on_path is None:
        return [own]
    return [Path(on_path), own]
