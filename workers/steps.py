"""What our workers add to Celery's own start and stop: two boot steps, named in `celery_app`.

Celery makes them when a worker starts, after Django is set up, and stops them in reverse order.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from celery import bootsteps

from workers.identity import THIS_WORKER
from workers.pulse import PulseThread

TICK_EVERY_S = 2.0


class Pulse(bootsteps.StartStopStep):
    """Reports the worker to the database, and hands its runs back when it stops."""

    requires = ("celery.worker.components:Pool",)  # stopped before the pool, which waits for tasks

    def __init__(self, worker: Any, **_: Any) -> None:
        super().__init__(worker)
        self.thread: PulseThread | None = None

    def start(self, worker: Any) -> None:
        """The pool is up."""
        THIS_WORKER.name = worker.hostname
        queues = tuple(sorted(worker.app.amqp.queues.consume_from))
        self.thread = PulseThread(THIS_WORKER, queues=queues, slots=worker.concurrency)
        self.thread.start()

    def stop(self, worker: Any) -> None:  # noqa: ARG002 - Celery's signature
        """SIGTERM: supervisors have their trainers save, then tasks end, then the pool."""
        THIS_WORKER.shutdown.set()
        if self.thread is not None:
            self.thread.sign_off()

    def terminate(self, worker: Any) -> None:
        """A second signal: the same, only that Celery waits no more."""
        self.stop(worker)


class LoopTick(bootsteps.StartStopStep):
    """Notes that the consumer's loop turns; Celery cancels the timer when the broker is lost."""

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def start(self, consumer: Any) -> None:
        """The consumer is connected, for the first time or again."""
        self._tick()
        consumer.timer.call_repeatedly(TICK_EVERY_S, self._tick)

    def _tick(self) -> None:
        """Called by the loop itself."""
        THIS_WORKER.tick_at = datetime.now(UTC)
