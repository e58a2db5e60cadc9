"""One child process of `manage.py up`: started, watched, restarted, stopped with its descendants.

Called by `process_tree.py`. Each child leads a session of its own, so that Ctrl+C reaches `up`
alone and the order of stopping is ours. A trainer that a worker started leads yet another
session: descendants are therefore found by parentage, never by process group.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from webapp.launcher.backoff import Backoff
from webapp.launcher.logs import log_path, open_log
from webapp.launcher.process_records import forget, remember

ORPHAN_STEPS = ((signal.SIGTERM, 10.0), (signal.SIGKILL, 5.0))


@dataclass(frozen=True)
class ChildSpec:
    """What to run, and how to treat it."""

    name: str
    command: list[str]
    working_directory: Path
    stop_patience_s: float = 10.0
    """How long it may take to end after SIGTERM."""
    runs_once: bool = False
    """A job: its end is expected, and success is announced."""
    inherited: tuple[int, ...] = ()
    """Open file descriptors that the process is given."""
    done_text: Callable[[float], str] | None = None
    """What to say when a job succeeded, from its seconds."""


@dataclass
class Child:
    """A spec and the process that runs it now, if any."""

    spec: ChildSpec
    base: Path
    environment: Mapping[str, str]
    say: Callable[[str], None]
    process: subprocess.Popen[bytes] | None = None
    restart_at: float | None = None
    backoff: Backoff = field(default_factory=Backoff)

    @property
    def name(self) -> str:
        """As in the log's file name."""
        return self.spec.name

    def start(self) -> None:
        """Run the command with its output in the log."""
        with open_log(self.base, self.name) as log:
            self.process = subprocess.Popen(
                self.spec.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.spec.working_directory,
                env=dict(self.environment),
                start_new_session=True,
                pass_fds=self.spec.inherited,
            )
        self.restart_at = None
        self.backoff.started(time.monotonic())
        remember(self.base, self.name, self.process.pid, self.spec.command)

    def tend(self, now: float) -> None:
        """Notice a death, and start again when its time has come. Called twice a second."""
        if self.restart_at is not None:
            if now >= self.restart_at:
                self.start()
            return
        if self.process is None or self.process.poll() is None:
            return
        forget(self.base, self.name)
        status, self.process = self.process.returncode, None
        if self.spec.runs_once:
            self._tell_end_of_job(status, now)
            return
        delay_s = self.backoff.delay_after_death(now)
        self.restart_at = now + delay_s
        self.say(
            f"{self.name} ended unexpectedly ({ending(status)}); starting it again in "
            f"{delay_s:.0f} s. Its last words: {log_path(self.base, self.name)}"
        )

    def request_stop(self) -> None:
        """Ask it to end and never start it again; returns at once."""
        self.restart_at = None
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()

    def descendants(self) -> list[psutil.Process]:
        """Every process below it now."""
        if self.process is None:
            return []
        try:
            children: list[psutil.Process] = psutil.Process(self.process.pid).children(
                recursive=True
            )
        except psutil.NoSuchProcess:
            return []
        return children

    def has_ended(self) -> bool:
        """Whether no process of it runs."""
        if self.process is None or self.process.poll() is not None:
            forget(self.base, self.name)
            return True
        return False

    def kill(self) -> None:
        """End it and what is below it without asking."""
        below = self.descendants()
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for process in below:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        forget(self.base, self.name)

    def _tell_end_of_job(self, status: int, now: float) -> None:
        """Announce how a job ended."""
        if status != 0:
            self.say(f"{self.name} failed ({ending(status)}): {log_path(self.base, self.name)}")
        elif self.spec.done_text is not None:
            self.say(self.spec.done_text(now - self.backoff.started_at))


def ending(status: int) -> str:
    """A return code in words."""
    if status < 0:
        return f"killed by {signal.Signals(-status).name}"
    return f"exit status {status}"
