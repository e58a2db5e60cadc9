"""The event log of one attempt: one JSON line an event, appended, never changed.

Used by everything in the trainer that has something to say; read by `workers.ingest`. It never
slows or stops training: a line that cannot be written (a full disk) waits in memory and goes out
with a later one, in order; a torn line is cut off before anything follows it.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from training_core.contract.events import EventHead, PhaseProgress
from training_core.contract.rundir import whole_lines

MOST_WAITING_LINES = 100_000


class EventLog:
    """Appends events with sequence numbers without gaps."""

    def __init__(self, path: Path, echo: Callable[[EventHead], None] | None = None) -> None:
        """Open or continue the log; `echo` hears of each event too and must not raise."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._echo = echo
        self._waiting: deque[bytes] = deque()
        self._seq, self._length = _find_end(path)
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.ftruncate(self._file, self._length)

    def emit(self, kind: type[EventHead], **fields: Any) -> None:
        """Append an event of that kind; numbers and time are added here."""
        with self._lock:
            if self._waiting and kind is PhaseProgress:
                return
            self._seq += 1
            event = kind(seq=self._seq, t=time.time(), **fields)
            if len(self._waiting) < MOST_WAITING_LINES:
                self._waiting.append(event.model_dump_json().encode() + b"\n")
            self._write_waiting()
            if self._echo is not None:
                self._echo(event)

    def close(self) -> bool:
        """Write what waits; False when something is lost."""
        with self._lock:
            self._write_waiting()
            os.close(self._file)
            return not self._waiting

    def _write_waiting(self) -> None:
        """Write whole lines as long as the disk takes them."""
        while self._waiting:
            line = self._waiting[0]
            try:
                written = os.write(self._file, line)
            except OSError:
                written = 0
            if written < len(line):
                os.ftruncate(self._file, self._length)
                return
            self._length += written
            self._waiting.popleft()


def _find_end(path: Path) -> tuple[int, int]:
    """(last sequence number, bytes of whole lines) of a log that may exist and be torn."""
    seq, length = 0, 0
    for end, line in whole_lines(path):
        seq, length = int(json.loads(line)["seq"]), end
    return seq, length
