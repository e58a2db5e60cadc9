"""How far an export is, in bytes. Used by `exports.folder`, told to whoever watches."""

from __future__ import annotations

import time
from collections.abc import Callable

from training_core.contract.exports import ExportProgress

Tell = Callable[[ExportProgress], None]
TELL_EVERY_S = 0.5


class Meter:
    """Counts bytes and passes the count on, at most twice a second and at each new phase."""

    def __init__(self, tell: Tell, *, total: int) -> None:
        self._tell = tell
        self._total = total
        self._done = 0
        self._message = ""
        self._next_at = 0.0

    def say(self, message: str) -> None:
        """A new phase."""
        self._message, self._next_at = message, 0.0
        self.add(0)

    def add(self, count: int) -> None:
        """So many bytes more are done."""
        self._done = min(self._done + count, self._total)
        if time.monotonic() >= self._next_at:
            self._next_at = time.monotonic() + TELL_EVERY_S
            self._tell(ExportProgress(done=self._done, total=self._total, message=self._message))
