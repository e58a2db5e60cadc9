"""What must be true before another host serves an installation's queues.

Called by `up.py`. The web host leaves a marker in each shared folder. A host that joins looks for
it where its own configuration says the folders are: so a mount that is missing, the folder of
another installation or other code is told in a sentence, before a run is claimed that cannot go on.
"""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import NamedTuple

from django.conf import settings

from training_core.contract.rundir import write_atomic
from webapp.launcher import database_steps
from webapp.launcher.code_version import code_version
from webapp.launcher.errors import LauncherError

MARKER = ".temper-storage"


class Marker(NamedTuple):
    """What the web host says of itself in a shared folder."""

    installation: str
    """Birth mark of its database."""
    code: str
    """Version of its code."""
    host: str
    """Its name, for sentences."""


def this_marker() -> Marker:
    """The marker of the database that this process uses, and of this code."""
    return Marker(database_steps.birth_mark(), code_version(), socket.gethostname())


def shared_folders() -> tuple[Path, ...]:
    """Folders that all hosts of an installation see."""
    runs, uploads = settings.RUNS_DIR, settings.UPLOADS_DIR
    made = settings.GLASS_DIR, settings.EXPORTS_DIR, settings.MODELS_DIR
    return tuple(Path(each) for each in (runs, uploads, *made))


def leave_markers() -> None:
    """The web host starts. Raises LauncherError when a folder cannot be written."""
    content = json.dumps(this_marker()._asdict(), indent=1).encode()
    for folder in shared_folders():
        try:
            write_atomic(folder / MARKER, content)
        except OSError as error:
            raise LauncherError(f"{folder} cannot be written: {error.strerror}.") from error


def require_same_installation() -> None:
    """A host that joins. Raises LauncherError with everything that is wrong."""
    problems = [*_schema_problems(), *_folder_problems(this_marker())]
    if problems:
        words = "\n".join(f"  {each}" for each in problems)
        raise LauncherError(f"This host cannot join:\n{words}")


def _schema_problems() -> list[str]:
    """The database against this code, in both directions."""
    known, applied = database_steps.known_migrations(), database_steps.applied_migrations()
    problems = []
    if known - applied:
        problems.append(
            "The database is behind this code: update the web host and run `manage.py up` there "
            "first."
        )
    if applied - known:
        newest = ".".join(sorted(applied - known)[-1])
        problems.append(
            f"The database is ahead of this code, which lacks {newest}: check out here what the "
            "web host runs."
        )
    return problems


def _folder_problems(mine: Marker) -> list[str]:
    """Each shared folder; other code is said once."""
    problems: list[str] = []
    for folder in shared_folders():
        found = _folder_problem(folder, mine)
        if found and found not in problems:
            problems.append(found)
    return problems


def _folder_problem(folder: Path, mine: Marker) -> str:
    """What is wrong with one folder; empty when nothing is."""
    where = f"{folder} (TEMPER_DATA_DIR is {settings.DATA_DIR})"
    try:
        theirs = Marker(**json.loads((folder / MARKER).read_bytes()))
    except FileNotFoundError:
        return (
            f"{where} is not the folder of the web host: there is no {MARKER} in it. Mount the "
            "shared storage, or link the folder to it."
        )
    except PermissionError:
        return (
            f"{where} cannot be read by this user: start the web host with TEMPER_UMASK=007, and "
            "give both users one group."
        )
    except (OSError, ValueError, TypeError) as error:
        return f"{folder / MARKER} cannot be read: {error}."
    if theirs.installation != mine.installation:
        return (
            f"{where} belongs to another installation (its web host was {theirs.host}) than the "
            "database that DATABASE_URL names."
        )
    if theirs.code != mine.code:
        return (
            f"The web host {theirs.host} runs code {theirs.code}, this host {mine.code}: check out "
            "the same version on both, then start `manage.py up` on the web host first."
        )
    return _write_problem(folder)


def _write_problem(folder: Path) -> str:
    """A file is made and removed."""
    probe = folder / f".joining-{socket.gethostname()}-{os.getpid()}"
    try:
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        return f"{folder} cannot be written by this user: {error.strerror}."
    return ""
