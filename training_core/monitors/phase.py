"""Progress inside a step, as `phase` events: the first and the last always, at most four a second
between them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from training_core.contract.events import Phase, PhaseProgress
from training_core.monitors.jsonl import EventLog

SHORTEST_INTERVAL_S = 0.25


class PhaseReporter:
    """One phase while it runs."""

    def __init__(
        self, log: EventLog, phase: Phase, *, step: int, stage: str, total: int, unit: str
    ) -> None:
        self._log = log
        self._head = {"step": step, "stage": stage, "phase": phase, "unit": unit}
        self._total = total
        self._began = self._reported = time.monotonic()
        self._done = 0
        self._tokens = 0
        self._emit()

    def update(self, done: int, *, total: int | None = None, tokens: int = 0) -> None:
        """Report how far the phase is; most calls only remember it.

        The end of the work is told at once, before what follows it in the phase.
        """
        self._done, self._tokens = done, tokens
        self._total = self._total if total is None else total
        ends = self._is_complete() and not self._end_told
        if ends or time.monotonic() - self._reported >= SHORTEST_INTERVAL_S:
            self._emit()

    def finish(self) -> None:
        """Report the end of the phase, unless it was told already."""
        self._done = self._total = max(self._total, self._done)
        if not self._end_told:
            self._emit()

    def _is_complete(self) -> bool:
        return self._done >= self._total > 0

    def _emit(self) -> None:
        self._reported = time.monotonic()
        self._end_told = self._is_complete()
        seconds = self._reported - self._began
        self._log.emit(
            PhaseProgress,
            **self._head,
            done=self._done,
            total=self._total,
            tokens_per_s=self._tokens / seconds if self._tokens and seconds > 0 else None,
        )


@contextmanager
def phase(
    log: EventLog, name: Phase, *, step: int, stage: str, total: int, unit: str
) -> Iterator[PhaseReporter]:
    """Report entry and exit of a phase; no exit when it is abandoned."""
    reporter = PhaseReporter(log, name, step=step, stage=stage, total=total, unit=unit)
    yield reporter
    reporter.finish()
