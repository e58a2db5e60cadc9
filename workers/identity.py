"""Who this worker process is. Made once by `workers.steps`, read by tasks and by the pulse."""

from __future__ import annotations

import os
import socket
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID


@dataclass
class WorkerProcess:
    """This process, as long as it lives."""

    name: str = ""
    """Celery's node name; empty until the worker has started."""
    boot: str = field(default_factory=lambda: uuid.uuid4().hex)
    """Tells this start from an earlier one of the same name."""
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    shutdown: threading.Event = field(default_factory=threading.Event)
    """Set when the worker is to end: every supervisor hands its run back."""
    tick_at: datetime | None = None
    """When the consumer's loop last turned with a live broker connection."""
    _runs: set[UUID] = field(default_factory=set)

    @property
    def host(self) -> str:
        """Name of the machine."""
        return socket.gethostname()

    @property
    def pid(self) -> int:
        """Process id."""
        return os.getpid()

    @property
    def busy_run(self) -> UUID | None:
        """A run that is being trained here."""
        return next(iter(tuple(self._runs)), None)

    @contextmanager
    def busy_with(self, run_id: UUID) -> Iterator[None]:
        """Count a run as being trained here."""
        self._runs.add(run_id)
        try:
            yield
        finally:
            self._runs.discard(run_id)


THIS_WORKER = WorkerProcess()
