"""A database that answers, for commands that need one whether `manage.py up` runs or not.

Called by `backup.py` and `restore.py`. An embedded PostgreSQL that is stopped is started for as
long as the command takes, under the lock that `up` takes, so that both never start it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from webapp.launcher import database_steps, paths
from webapp.launcher.errors import LauncherError
from webapp.launcher.instance_lock import instance_lock
from webapp.launcher.postgres import EmbeddedPostgres
from webapp.launcher.servers import try_database


@contextlib.contextmanager
def database_to_read(base: Path) -> Iterator[None]:
    """The installation's database, running or not. Raises LauncherError when there is none."""
    engine = EmbeddedPostgres(base)
    if not paths.uses_embedded_postgres():
        try_database()
        yield
    elif engine.is_ready():
        yield
    elif (engine.cluster / "PG_VERSION").exists():
        with instance_lock(base), _started(engine):
            yield
    else:
        raise LauncherError(f"There is no database in {base}: has TEMPER_DATA_DIR another value?")


@contextlib.contextmanager
def database_alone(base: Path) -> Iterator[None]:
    """The database, new where there is none, while no `up` runs. Raises LauncherError."""
    with instance_lock(base):
        if paths.uses_embedded_postgres():
            with _started(EmbeddedPostgres(base)):
                yield
        else:
            try_database()
            yield


@contextlib.contextmanager
def _started(engine: EmbeddedPostgres) -> Iterator[None]:
    """The engine, stopped at the end."""
    try:
        engine.start()
        yield
    finally:
        database_steps.disconnect()
        engine.stop()
