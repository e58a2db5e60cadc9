"""Throw-away PostgreSQL and Valkey for one pytest invocation.

`tests/settings.py` calls `enter_home` before Django computes a path; `tests/conftest.py` starts
the engines when the first test asks for them. Each invocation has a directory of its own, so that
any number of them run side by side, and so has each process of `pytest -n 2`. The engines die with
pytest however it dies (the kernel sends them a signal); what a killed pytest leaves on disk is
swept by the next one.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from webapp.launcher import paths
from webapp.launcher.postgres import EmbeddedPostgres
from webapp.launcher.process_records import boot_id, start_ticks
from webapp.launcher.valkey import EmbeddedValkey

PREFIX = "temper-test-"
HOME_VARIABLE = f"TEMPER_TEST_HOME_{os.environ.get('PYTEST_XDIST_WORKER', 'ALONE').upper()}"
"""Set for child processes. Its name tells a test process from the one that distributes tests to
it, whose environment it inherits."""
TEST_DATABASE = f"test_{paths.DATABASE_NAME}"  # Django's own name for it
REAL_SERVERS = ("DATABASE_URL", "REDIS_URL")


@dataclass
class Engines:
    """Both engines of this invocation, running."""

    postgres: EmbeddedPostgres
    valkey: EmbeddedValkey

    @property
    def home(self) -> Path:
        """The data directory of this invocation."""
        return self.postgres.base

    def child_environment(self, **extra: str) -> dict[str, str]:
        """The environment for a process under test that shall see the test database."""
        url = paths.embedded_database_url(self.home, name=TEST_DATABASE)
        return {**os.environ, "DATABASE_URL": url, "REDIS_URL": self.valkey.url, **extra}


def enter_home() -> Path:
    """Make this invocation's data directory and point every later import of settings at it."""
    if HOME_VARIABLE in os.environ:  # a child process of the tests
        return Path(os.environ[HOME_VARIABLE])
    sweep()
    home = Path(tempfile.mkdtemp(prefix=PREFIX)).resolve()
    (home / "owner").write_text(identity_of(os.getpid()))
    (home / "staticfiles").mkdir()  # whitenoise warns of a missing one at every client
    os.environ[HOME_VARIABLE] = str(home)
    os.environ["TEMPER_DATA_DIR"] = str(home)
    for name in REAL_SERVERS:  # a developer's real servers are never touched by a test
        os.environ.pop(name, None)
    return home


def start() -> Engines:
    """Start both engines in this invocation's directory."""
    home = enter_home()
    engines = Engines(
        EmbeddedPostgres(home, disposable=True), EmbeddedValkey(home, disposable=True)
    )
    engines.postgres.start()
    engines.valkey.start()
    return engines


def leave_home() -> None:
    """Stop what runs in this invocation's directory and remove it; only its owner does."""
    home = Path(os.environ.get(HOME_VARIABLE, ""))
    if (home / "owner").is_file() and (home / "owner").read_text() == identity_of(os.getpid()):
        remove(home)


def remove(home: Path) -> None:
    """Stop the engines of a directory and delete it with its sockets."""
    EmbeddedPostgres(home).stop()
    EmbeddedValkey(home).stop()
    shutil.rmtree(paths.socket_dir(home), ignore_errors=True)
    shutil.rmtree(home, ignore_errors=True)


def sweep() -> None:
    """Remove what pytest invocations that were killed have left."""
    for home in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        try:
            is_ours = home.stat().st_uid == os.getuid()
            owner = (home / "owner").read_text()
        except OSError:
            continue
        if is_ours and owner != identity_of(int(owner.split()[0])):
            remove(home.resolve())


def identity_of(pid: int) -> str:
    """A process told apart from a later one with the same pid; just the pid when it is gone.

    In ticks since boot: a time of day would change with the clock, and sweep what still runs.
    """
    ticks = start_ticks(pid)
    return f"{pid}" if ticks is None else f"{pid} {boot_id()} {ticks}"
