"""The thread in which a worker reports itself every few seconds. Started by `workers.steps.Pulse`.

It also notices when the worker has gone deaf: messages lie in its queues, it has nothing to do, and
yet it takes none. That has been seen after a broker's restart in many versions of Celery; the cure
is a new process, so the worker ends itself and the launcher starts it again.
"""

from __future__ import annotations

import logging
import os
import platform
import signal
import threading
from importlib.metadata import version

import redis
from celery.worker import state

from webapp import lifecycle
from webapp.launcher import paths
from webapp.launcher.gpus import find_gpus
from workers.identity import WorkerProcess

logger = logging.getLogger(__name__)

PULSE_EVERY_S = 5.0
DEAF_AFTER_PULSES = 4
"""Idle with messages waiting for so many pulses in a row."""


class PulseThread(threading.Thread):
    """Reports one worker process until it signs off."""

    def __init__(self, process: WorkerProcess, *, queues: tuple[str, ...], slots: int) -> None:
        super().__init__(name="pulse", daemon=True)
        self.process = process
        self.queues = queues
        self.slots = slots
        self.devices = devices_in_words()
        self._ended = threading.Event()
        self._deaf_pulses = 0
        self._done = 0
        self._has_greeted = False

    def run(self) -> None:
        """Report, look, wait."""
        while not self._ended.is_set():
            self.beat()
            self.listen()
            self._ended.wait(PULSE_EVERY_S)
        self._say_goodbye()

    def sign_off(self) -> None:
        """The worker stops: the thread says goodbye and ends."""
        self._ended.set()

    def beat(self) -> None:
        """One report. A dead database is no reason to stop: the next report may get through."""
        try:
            lifecycle.worker_seen(self.facts())
            if not self._has_greeted:
                lifecycle.disown_predecessor(self.process.name, self.process.boot)
                self._has_greeted = True
        except Exception as error:  # whatever it is, the next pulse tries again
            logger.warning("The worker could not report itself: %s", error)
            lifecycle.forget_connection()

    def listen(self) -> None:
        """End the process when it is deaf."""
        done = sum(state.total_count.values())
        is_idle = done == self._done and not (state.active_requests or state.reserved_requests)
        self._deaf_pulses = self._deaf_pulses + 1 if is_idle and self._messages_wait() else 0
        self._done = done
        if self._deaf_pulses >= DEAF_AFTER_PULSES and not self.process.shutdown.is_set():
            logger.critical("Messages wait but this idle worker hears none: it starts anew.")
            os.kill(self.process.pid, signal.SIGTERM)

    def facts(self) -> lifecycle.WorkerFacts:
        """What the workers page shows."""
        return lifecycle.WorkerFacts(
            name=self.process.name,
            boot=self.process.boot,
            host=self.process.host,
            pid=self.process.pid,
            queues=self.queues,
            slots=self.slots,
            devices=self.devices,
            versions=versions(),
            started_at=self.process.started_at,
            consuming_at=self.process.tick_at,
            busy_run=self.process.busy_run,
        )

    def _messages_wait(self) -> bool:
        """Whether any of the worker's queues holds a message; no when the broker is away."""
        try:
            with redis.Redis.from_url(paths.redis_url(), socket_timeout=3) as client:
                return any(client.llen(queue) for queue in self.queues)
        except (redis.RedisError, OSError):
            return False

    def _say_goodbye(self) -> None:
        """Tell the database that the silence is meant."""
        try:
            lifecycle.worker_gone(self.process.name, self.process.boot)
        except lifecycle.DATABASE_DOWN as error:
            logger.warning("The worker could not sign off: %s", error)
        finally:
            lifecycle.forget_connection()


def devices_in_words() -> tuple[str, ...]:
    """GPUs, and the processor."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return (*(str(gpu) for gpu in find_gpus()), f"{cores} CPU cores")


def versions() -> dict[str, str]:
    """Versions that matter for a bug report; torch is asked by its metadata, never imported."""
    names = ("torch", "transformers", "celery", "django")
    return {"python": platform.python_version(), **{name: version(name) for name in names}}
