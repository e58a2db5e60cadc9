"""How long to wait before a process that died is started again.

Called by the units of the process tree. A process that stayed up for a minute has earned a quick
restart; one that keeps dying is tried ever more rarely, never given up.
"""

from __future__ import annotations

from dataclasses import dataclass

FIRST_DELAY_S = 1.0
LONGEST_DELAY_S = 60.0
HEALTHY_AFTER_S = 60.0


@dataclass
class Backoff:
    """Doubling delays, reset by a healthy spell. Times are of `time.monotonic()`."""

    failures: int = 0
    started_at: float = 0.0

    def started(self, now: float) -> None:
        """Note a start."""
        self.started_at = now

    def delay_after_death(self, now: float) -> float:
        """Seconds until the next start, for a process found dead now."""
        if now - self.started_at >= HEALTHY_AFTER_S:
            self.failures = 0
        self.failures += 1
        # The exponent is bounded: a float has no room for the thousandth doubling.
        return min(LONGEST_DELAY_S, FIRST_DELAY_S * 2.0 ** min(self.failures - 1, 10))
