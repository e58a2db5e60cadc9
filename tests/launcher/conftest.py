"""Fixtures of the launcher's tests: data directories and processes that are cleaned up."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from webapp.launcher import paths
from webapp.launcher.postgres import EmbeddedPostgres
from webapp.launcher.valkey import EmbeddedValkey

IGNORE_SIGTERM = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
SLEEP = "import time; time.sleep(600)"


@pytest.fixture
def new_base() -> Iterator[Callable[[], Path]]:
    """Makes data directories; whatever engine runs in one is stopped at the end."""
    made: list[Path] = []

    def make() -> Path:
        # Not below tmp_path: PostgreSQL's account must be able to pass through.
        made.append(Path(tempfile.mkdtemp(prefix="temper-launcher-")).resolve())
        made[-1].chmod(0o755)
        return made[-1]

    yield make
    for base in made:
        EmbeddedPostgres(base, disposable=True).stop()
        EmbeddedValkey(base).stop()
        shutil.rmtree(paths.socket_dir(base), ignore_errors=True)
        shutil.rmtree(base, ignore_errors=True)


@pytest.fixture
def base(new_base: Callable[[], Path]) -> Path:
    return new_base()


@pytest.fixture
def sleeper() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts processes that sleep; killed at the end."""
    started: list[subprocess.Popen[bytes]] = []

    def start(code: str = SLEEP, **more: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", code]
        started.append(
            subprocess.Popen(command, env={**os.environ, **more}, start_new_session=True)
        )
        return started[-1]

    yield start
    for process in started:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait_for(condition: Callable[[], object], patience_s: float = 15.0) -> None:
    """Poll until the condition holds."""
    give_up = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > give_up:
            raise AssertionError(f"it did not come true in {patience_s} s")
        time.sleep(0.05)


def is_running(pid: int) -> bool:
    """Whether the process lives; a zombie does not."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
