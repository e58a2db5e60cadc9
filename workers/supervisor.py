"""See one claimed run through: start its trainer, feed its events to the database, carry wishes to
it, and settle the run when it ends.

Called by `workers.tasks.train_run`, one a slot, in a thread. What would surprise: PostgreSQL may go
away and come back at any time. While it is away the trainer trains on, everything else waits, and
the events catch up by byte offset afterwards. When the lease is lost (`LeaseLost`) the run belongs
to somebody else: the trainer is killed and nothing more is said about the run.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from training_core.contract.control import ControlCommand
from webapp import lifecycle
from webapp.lifecycle import Claim, LeaseLost, RunState, Verdict
from workers.escalation import GRACES, Escalation, Graces, Wish
from workers.exit_words import cannot_start, count_oom_kills, judge_exit
from workers.ingest import EventTail
from workers.timers import Backoff, Every
from workers.trainer_process import TrainerProcess, kill_marked

logger = logging.getLogger(__name__)

TICK_S = 0.2
ORDERS_EVERY_S = 1.0
HEARTBEAT_EVERY_S = 3.0
CONSOLE_EVERY_S = 1.0
SHUTDOWN_PATIENCE_S = 4.0
"""How long a worker that shuts down waits for a database that is away."""
T = TypeVar("T")
WISHES: dict[RunState, Wish] = {RunState.STOPPING: "stop", RunState.PAUSING: "pause"}


class DatabaseGaveOut(Exception):
    """The database is away and the worker cannot wait for it: the lease runs out by itself."""


class Supervisor:
    """One attempt of one run, from the claim to its end."""

    def __init__(
        self,
        claim: Claim,
        command: Sequence[str],
        *,
        device: str,
        shutdown: threading.Event,
        graces: dict[Wish, Graces] = GRACES,
    ) -> None:
        self.claim = claim
        self.command = [
            *command,
            str(claim.run_dir.root),
            "--attempt",
            str(claim.attempt),
            "--token",
            str(claim.token),
        ]
        self.device = device
        self.shutdown = shutdown
        self.tail = EventTail(claim)
        self.escalation = Escalation(graces)
        self._backoff = Backoff()
        self._orders = Every(ORDERS_EVERY_S)
        self._heartbeat = Every(HEARTBEAT_EVERY_S)
        self._console = Every(CONSOLE_EVERY_S)
        self._console_size = 0

    def run(self) -> None:
        """The whole life of the attempt. Raises nothing: what can happen is settled here."""
        try:
            self._finish(self._prepare() or self._train())
        except LeaseLost as lost:
            self._abandon(str(lost))
        except Exception:  # the task has no one to tell; the lease runs out by itself
            logger.exception("Run #%d is left to the reaper", self.claim.number)
        finally:
            lifecycle.forget_connection()

    def _prepare(self) -> Verdict | None:
        """What must be true before a trainer starts; a verdict when it cannot be made true."""
        for number in self.claim.run_dir.attempts():
            kill_marked(self._mark(number))  # what a killed worker left on this machine
        try:
            self._insist(lambda: lifecycle.catch_up(self.claim.run_id))
            return self._insist(lambda: lifecycle.prepare_directory(self.claim))
        except OSError as error:
            return cannot_start(error)

    def _train(self) -> Verdict:
        """Start the trainer, tend it until it is gone, say how it ended."""
        kills_before = count_oom_kills()
        try:
            trainer = TrainerProcess(
                self.command,
                mark=self._mark(self.claim.attempt),
                console=self.claim.run_dir.console_file(self.claim.attempt),
                device=self.device,
                models_dir=self.claim.models_dir,
            )
        except OSError as error:
            return cannot_start(error)
        try:
            while trainer.is_running():
                self._tend(trainer)
                time.sleep(TICK_S)
        finally:  # also on LeaseLost: no trainer outlives its supervisor's right to it
            code = trainer.end()
        return judge_exit(
            code,
            trainer.last_words(),
            killed_for=self._killed_for(code),
            was_out_of_memory=count_oom_kills() > kills_before,
        )

    def _tend(self, trainer: TrainerProcess) -> None:
        """One tick of the watch. Raises LeaseLost."""
        now = time.monotonic()
        if self.shutdown.is_set():
            self.escalation.ask("shutdown", now)
        if self._backoff.is_over(now):
            try:
                self._talk_to_database(now)
                self._backoff.reset()
            except LeaseLost:
                raise
            except Exception as error:  # no fault on this side may end the training
                self._database_failed(error, now)
        if self.tail.has_finished:
            self.escalation.ask("finish", now)
        if number := self.escalation.due_signal(now):
            logger.info("Run #%d: %s to its trainer", self.claim.number, number.name)
            trainer.signal_group(number)

    def _talk_to_database(self, now: float) -> None:
        """News in, lease renewed, wishes out."""
        self.tail.ingest(now)
        if self._heartbeat.is_due(now):
            self._obey(lifecycle.heartbeat(self.claim), now)
            self._heartbeat.done(now)
        elif self._orders.is_due(now):
            self._obey(lifecycle.read_orders(self.claim), now)
            self._orders.done(now)
        if self._console.is_due(now):
            self._tell_console()
            self._console.done(now)

    def _obey(self, orders: lifecycle.Orders, now: float) -> None:
        """Carry wishes to the trainer."""
        if orders.commands:
            self._send(orders.commands)
        if wish := WISHES.get(orders.state):
            self.escalation.ask(wish, now)

    def _send(self, commands: tuple[ControlCommand, ...]) -> None:
        """First the file, then the row: a failure in between writes a line twice, which is read
        once."""
        lifecycle.append_commands(self.claim.run_dir, commands)
        lifecycle.commands_sent(self.claim, commands)

    def _tell_console(self) -> None:
        """Open pages hear that something was printed."""
        try:
            size = self.claim.run_dir.console_file(self.claim.attempt).stat().st_size
        except OSError:
            return
        if size != self._console_size:
            lifecycle.console_grew(self.claim.run_id, self.claim.attempt, size)
            self._console_size = size

    def _finish(self, seen: Verdict) -> None:
        """All events in, then the run's next state."""
        self._insist(self.tail.drain)
        self._insist(self._tell_console)
        verdict = self._insist(lambda: lifecycle.finish_attempt(self.claim, seen))
        logger.info(
            "Run #%d, attempt %d: %s (%s)",
            self.claim.number,
            self.claim.attempt,
            verdict.outcome,
            verdict.cause,
        )

    def _abandon(self, reason: str) -> None:
        """The run belongs to others now; only the attempt is closed."""
        logger.warning("Run #%d was given up: %s", self.claim.number, reason)
        verdict = Verdict("failed", "lease_lost", f"The worker had to give the run up: {reason}.")
        self._insist(lambda: lifecycle.abandon_attempt(self.claim, verdict))

    def _insist(self, call: Callable[[], T]) -> T:
        """Repeat a call until the database answers. Raises DatabaseGaveOut in a shutdown."""
        give_up: float | None = None
        while True:
            try:
                return call()
            except lifecycle.DATABASE_DOWN as error:
                now = time.monotonic()
                if self.shutdown.is_set():
                    give_up = give_up or now + SHUTDOWN_PATIENCE_S
                    if now > give_up:
                        raise DatabaseGaveOut from error
                self._database_failed(error, now)
                time.sleep(self._backoff.remaining(time.monotonic()))

    def _database_failed(self, error: Exception, now: float) -> None:
        """Note it, drop the broken connection, wait a little longer each time."""
        if not isinstance(error, lifecycle.DATABASE_DOWN):
            logger.error("Run #%d: a fault of the program", self.claim.number, exc_info=error)
        elif not self._backoff.failures:
            logger.warning("Run #%d: the database is away (%s)", self.claim.number, error)
        lifecycle.forget_connection()
        self._backoff.failed(now)

    def _killed_for(self, code: int) -> Wish | None:
        """The wish that the signal it died of was sent for; None when it was not our doing."""
        sent = self.escalation.sent
        return self.escalation.wish if sent is not None and code == -sent else None

    def _mark(self, attempt: int) -> str:
        """What marks the processes of an attempt."""
        return f"{self.claim.run_id}:{attempt}"
