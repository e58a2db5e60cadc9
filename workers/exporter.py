"""See one claimed export through: start its process, carry its progress to the row, kill it when
nobody wants it any more, and say how it ended.

Called by `workers.tasks.export_checkpoint`. What would surprise: the process talks through files of
the export's directory alone, so while PostgreSQL is away it simply goes on.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from training_core.contract.exports import ExportResult
from webapp import lifecycle
from webapp.lifecycle import ExportClaim
from workers.exit_words import count_oom_kills, tell_end
from workers.timers import Backoff, Every
from workers.trainer_process import TrainerProcess, kill_marked

logger = logging.getLogger(__name__)

EXPORT_COMMAND = (sys.executable, "-m", "workers.export_main")
TICK_S = 0.1
REPORT_EVERY_S = 0.5
NO_DEVICE = ""
MOST_FAILURES = 100
"""Tries to store the end while the database is away, three seconds apart at last."""
T = TypeVar("T")


class Exporter:
    """One attempt at one export."""

    def __init__(self, claim: ExportClaim, command: Sequence[str] = EXPORT_COMMAND) -> None:
        self.claim = claim
        self.command = [*command, str(claim.folder.root)]
        self.mark = f"export:{claim.export_id}"
        self._backoff = Backoff()

    def run(self) -> None:
        """From the start of the process to the row that says how it ended."""
        kill_marked(self.mark)  # what a killed worker left on this machine
        kills_before = count_oom_kills()
        try:
            process = TrainerProcess(
                self.command,
                mark=self.mark,
                console=self.claim.folder.console_file,
                device=NO_DEVICE,
                models_dir=self.claim.folder.root,
            )
        except OSError as error:
            self._finish(ExportResult(outcome="failed", message=f"It could not start: {error}."))
            return
        try:
            is_wanted = self._watch(process)
        finally:
            code = process.end()
        if not is_wanted:
            logger.info("Export %s is not wanted any more", self.claim.export_id)
        was_killed = code == -9 and count_oom_kills() > kills_before
        result = self.claim.folder.find_result()
        self._finish(result or _unsaid(code, process.last_words(), was_killed=was_killed))

    def _watch(self, process: TrainerProcess) -> bool:
        """Carry progress until the process is gone; False as soon as the claim falls."""
        report = Every(REPORT_EVERY_S)
        while process.is_running():
            now = time.monotonic()
            if report.is_due(now) and self._backoff.is_over(now):
                progress = self.claim.folder.find_progress()
                if self._try(lambda: lifecycle.report_export(self.claim, progress)) is False:  # noqa: B023
                    return False
                report.done(now)
            time.sleep(TICK_S)
        return True

    def _finish(self, result: ExportResult) -> None:
        """Store the end, with patience while the database is away."""
        for _ in range(MOST_FAILURES):
            if self._try(lambda: lifecycle.finish_export(self.claim, result)) is not None:
                return
            time.sleep(self._backoff.remaining(time.monotonic()))

    def _try(self, call: Callable[[], T]) -> T | None:
        """A call to the database; None when it is away."""
        try:
            answer = call()
        except lifecycle.DATABASE_DOWN as error:
            logger.warning("Export %s: the database is away: %s", self.claim.export_id, error)
            self._backoff.failed(time.monotonic())
            lifecycle.forget_connection()
            return None
        self._backoff.reset()
        return answer


def _unsaid(code: int, last_words: str, *, was_killed: bool) -> ExportResult:
    """A result for a process that left none."""
    logger.error("An export ended with code %d without a result:\n%s", code, last_words)
    if was_killed:
        return ExportResult(
            outcome="failed",
            message="The machine ran out of memory while the model was loaded.",
            advice="Make the export again while less is running, or on a machine with more memory.",
        )
    return ExportResult(
        outcome="failed",
        message=f"The process that made it ended {tell_end(code)} without saying why.",
        advice="Make the export again; the worker's log has its last words.",
    )
