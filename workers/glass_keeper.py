"""See one step under glass through: start its process, keep the row alive, end it when it must end.

Called by `workers.tasks.glass_step`, in a thread that holds a slot of the train queue. Simpler than
the supervisor of a run, since a step lasts for seconds and has nothing to save: whoever cancels it,
and whatever goes wrong, the process is killed. While PostgreSQL is away the step goes on; what it
has come to is said when the database is back.
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from training_core.contract.glass import GlassEnd
from webapp import lifecycle
from webapp.lifecycle import GlassClaim
from workers.exit_words import count_oom_kills, tell_end
from workers.timers import Backoff, Every
from workers.trainer_process import TrainerProcess

logger = logging.getLogger(__name__)

TICK_S = 0.1
TEND_EVERY_S = 0.5
TIME_LIMIT_S = 600.0
"""Longest life of the process; a slot belongs to runs in the main."""
SHUTDOWN_PATIENCE_S = 4.0
"""How long a worker that shuts down waits for a database that is away."""

Reason = Literal["cancelled", "lost", "shutdown", "time_limit"]


@dataclass(frozen=True)
class Limits:
    """Seconds; tests take shorter ones."""

    time_limit_s: float = TIME_LIMIT_S


class GlassKeeper:
    """One process, from its start to its row."""

    def __init__(
        self,
        claim: GlassClaim,
        command: Sequence[str],
        *,
        device: str,
        shutdown: threading.Event,
        limits: Limits | None = None,
    ) -> None:
        self.claim = claim
        self.command = [*command, str(claim.directory.root)]
        if claim.run_dir is not None:
            self.command += ["--run-dir", str(claim.run_dir)]
        self.device = device
        self.shutdown = shutdown
        self.limits = limits or Limits()
        self._tending = Every(TEND_EVERY_S)
        self._backoff = Backoff()

    def run(self) -> None:
        """The whole life of the process. Raises nothing: what can happen is settled here."""
        try:
            self._settle(*self._work())
        except Exception:  # the task has no one to tell; the row is found silent by the reaper
            logger.exception("Step under glass %s is left to the reaper", self.claim.glass_id)
        finally:
            lifecycle.forget_connection()

    def _work(self) -> tuple[Reason | None, GlassEnd]:
        """Start it, watch it, end it: why it was killed, and how it ended otherwise."""
        kills_before = count_oom_kills()
        reason: Reason | None = None
        try:
            self.claim.directory.begin(self.claim.spec)
            process = TrainerProcess(
                self.command,
                mark=f"glass:{self.claim.glass_id}",
                console=self.claim.directory.console_file,
                device=self.device,
                models_dir=self.claim.models_dir,
            )
        except OSError as error:
            return None, _cannot_start(error)
        started = time.monotonic()
        try:
            while reason is None and process.is_running():
                reason = self._why_end(time.monotonic() - started)
                time.sleep(TICK_S)
        finally:
            code = process.end()
        said = self.claim.directory.find_end()
        was_oom = count_oom_kills() > kills_before
        return reason, said or judge_glass_exit(code, process.last_words(), was_oom)

    def _why_end(self, age_s: float) -> Reason | None:
        """Why the process must go now; None when it may go on."""
        now = time.monotonic()
        if self.shutdown.is_set():
            return "shutdown"
        if age_s > self.limits.time_limit_s:
            return "time_limit"
        if not self._tending.is_due(now) or not self._backoff.is_over(now):
            return None
        try:
            order = lifecycle.tend_glass(self.claim)
        except lifecycle.DATABASE_DOWN as error:
            self._database_failed(error, now)
            return None
        self._backoff.reset()
        self._tending.done(now)
        return None if order == "go" else order

    def _settle(self, reason: Reason | None, end: GlassEnd) -> None:
        """Tell the database, once it listens."""
        if reason == "lost":
            return
        if reason == "shutdown":
            self._insist(lambda: lifecycle.release_glass(self.claim))
        elif reason == "cancelled":
            self._insist(lambda: lifecycle.cancel_claimed_glass(self.claim))
        else:
            told = _too_long(self.limits.time_limit_s) if reason == "time_limit" else end
            self._insist(lambda: lifecycle.finish_glass(self.claim, told))
            logger.info("Step under glass %s: %s", self.claim.glass_id, told.cause)

    def _insist(self, call: Callable[[], object]) -> None:
        """Repeat a call until the database answers; in a shutdown only for a while."""
        give_up: float | None = None
        while True:
            try:
                call()
                return
            except lifecycle.DATABASE_DOWN as error:
                now = time.monotonic()
                if self.shutdown.is_set():
                    give_up = give_up or now + SHUTDOWN_PATIENCE_S
                    if now > give_up:
                        raise
                self._database_failed(error, now)
                time.sleep(self._backoff.remaining(time.monotonic()))

    def _database_failed(self, error: Exception, now: float) -> None:
        """Drop the broken connection, wait a little longer each time."""
        logger.warning("Step under glass %s: no database (%s)", self.claim.glass_id, error)
        lifecycle.forget_connection()
        self._backoff.failed(now)


def judge_glass_exit(code: int, last_words: str, was_out_of_memory: bool) -> GlassEnd:
    """What to conclude when the process ended without saying why."""
    words = f"\nIts last lines:\n{last_words}" if last_words else ""
    if code == -signal.SIGKILL and was_out_of_memory:
        return GlassEnd(
            outcome="failed",
            cause="out_of_memory",
            message="The process was killed, and the system's out-of-memory killer was at work.",
            advice="Ask for fewer or shorter completions, choose a smaller model, or wait until "
            "less runs on this machine.",
        )
    return GlassEnd(
        outcome="failed",
        cause="killed" if code < 0 else "exception",
        message=f"The process ended {tell_end(code)} without saying why.{words}",
        advice="Ask again; if it ends like this once more, look at the worker's log.",
    )


def _cannot_start(error: OSError) -> GlassEnd:
    """The process could not be started, or its directory not be written."""
    return GlassEnd(
        outcome="failed",
        cause="cannot_start",
        message=f"The process could not be started: {error}.",
        advice="Look at the worker's log; the disk may be full or the Python environment broken.",
    )


def _too_long(limit_s: float) -> GlassEnd:
    """It was killed by the clock."""
    return GlassEnd(
        outcome="failed",
        cause="time_limit",
        message=f"It took longer than {limit_s:.0f} s and was ended.",
        advice="Ask for fewer or shorter completions, or choose a smaller model. A model that was "
        "still being fetched from the hub is fetched on from there when you ask again.",
    )
