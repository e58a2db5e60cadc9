"""An embedded engine as a member of the process tree: noticed when it dies, started again.

Called by `process_tree.py`. What would surprise: `tend` blocks while PostgreSQL recovers; the
other children only wait for their restarts meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import psutil

from webapp.launcher.backoff import Backoff
from webapp.launcher.errors import LauncherError


class Engine(Protocol):
    """What PostgreSQL and Valkey have in common."""

    def start(self) -> None:
        """Start and return when it answers."""

    def stop(self) -> None:
        """Stop and return when it is gone."""

    def running_process(self) -> psutil.Process | None:
        """The server's process, if it runs."""


@dataclass
class EngineUnit:
    """One engine under watch."""

    name: str
    engine: Engine
    say: Callable[[str], None]
    restart_at: float | None = None
    backoff: Backoff = field(default_factory=Backoff)

    def tend(self, now: float) -> None:
        """Notice a death, and start again when its time has come."""
        if self.restart_at is None and self.engine.running_process() is None:
            delay_s = self.backoff.delay_after_death(now)
            self.restart_at = now + delay_s
            self.say(f"{self.name} ended unexpectedly; starting it again in {delay_s:.0f} s.")
        elif self.restart_at is not None and now >= self.restart_at:
            self._start_again(now)

    def _start_again(self, now: float) -> None:
        """One attempt; a failure is told and tried again later."""
        self.backoff.started(now)
        try:
            self.engine.start()
        except LauncherError as error:
            self.restart_at = now + self.backoff.delay_after_death(now)
            self.say(f"{self.name} does not start: {error}")
        else:
            self.restart_at = None
            self.say(f"{self.name} runs again.")
