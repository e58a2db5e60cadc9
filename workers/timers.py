"""Two small clocks of the supervisor. Pure: the time is handed in."""

from __future__ import annotations

FIRST_WAIT_S = 0.25
LONGEST_WAIT_S = 3.0


class Every:
    """Something that is done each so many seconds, the first time at once."""

    def __init__(self, interval_s: float) -> None:
        self.interval_s = interval_s
        self._last = float("-inf")

    def is_due(self, now: float) -> bool:
        """Whether it is time."""
        return now - self._last >= self.interval_s

    def done(self, now: float) -> None:
        """It was done."""
        self._last = now


class Backoff:
    """Longer and longer waits while something keeps failing."""

    def __init__(self) -> None:
        self.failures = 0
        self._until = float("-inf")

    def is_over(self, now: float) -> bool:
        """Whether it may be tried again."""
        return now >= self._until

    def remaining(self, now: float) -> float:
        """Seconds until then."""
        return max(0.0, self._until - now)

    def failed(self, now: float) -> None:
        """It failed once more."""
        wait = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2**self.failures)
        self.failures += 1
        self._until = now + wait

    def reset(self) -> None:
        """It worked."""
        self.failures = 0
        self._until = float("-inf")
