"""From a wish to a kill: what to send a trainer that should end, and when. Pure, no clock.

Used by `workers.supervisor`. A wish to stop or pause goes through `control.jsonl` first; SIGTERM
follows when that had its time, SIGKILL when that had its. A shutdown begins with SIGTERM. A wish is
only ever replaced by one that ends sooner.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import Literal

Wish = Literal["stop", "pause", "shutdown", "finish"]
"""`finish`: the trainer has said its last word and has only to exit."""


@dataclass(frozen=True)
class Graces:
    """Seconds from the wish to each signal."""

    term_s: float
    kill_s: float


GRACES: dict[Wish, Graces] = {
    "stop": Graces(60.0, 85.0),
    "pause": Graces(60.0, 85.0),
    "shutdown": Graces(0.0, 25.0),
    "finish": Graces(20.0, 30.0),
}


class Escalation:
    """The state of one trainer's way out."""

    def __init__(self, graces: dict[Wish, Graces] = GRACES) -> None:
        self._graces = graces
        self.wish: Wish | None = None
        self._since = 0.0
        self.sent: signal.Signals | None = None
        """The last signal that was due."""

    def ask(self, wish: Wish, now: float) -> None:
        """A wish at time `now`; kept only when it ends the trainer sooner than the one before."""
        if wish == self.wish or self._deadline() <= now + self._graces[wish].kill_s:
            return
        self.wish, self._since = wish, now

    def due_signal(self, now: float) -> signal.Signals | None:
        """The signal to send now, each once."""
        if self.wish is None:
            return None
        waited, graces = now - self._since, self._graces[self.wish]
        if waited >= graces.kill_s and self.sent is not signal.SIGKILL:
            self.sent = signal.SIGKILL
        elif waited >= graces.term_s and self.sent is None:
            self.sent = signal.SIGTERM
        else:
            return None
        return self.sent

    def _deadline(self) -> float:
        """When the present wish kills."""
        return float("inf") if self.wish is None else self._since + self._graces[self.wish].kill_s
