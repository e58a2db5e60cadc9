"""What people ask of a running trainer: `control.jsonl` and SIGTERM, looked at often and cheaply.

Used at step boundaries (`take`) and inside long rollouts and evaluations (`check`), so that a stop
takes effect within seconds.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from pydantic import ValidationError

from training_core.contract.control import Command, ControlCommand
from training_core.contract.rundir import RunDir, whole_lines
from training_core.failures import Interrupted

LOOK_INTERVAL_S = 0.2
ENDING: tuple[Command, ...] = ("stop", "pause", "shutdown")


class Steering:
    """Commands for one attempt, each handed out once."""

    def __init__(self, run_dir: RunDir, attempt: int) -> None:
        self._path = run_dir.control_file
        self._attempt = attempt
        self._offset = 0
        self._looked = 0.0
        self._seen: set[str] = set()
        self._pending: list[ControlCommand] = []
        self.shutdown_asked = False

    def ask_shutdown(self) -> None:
        """The process was told to end (SIGTERM); safe to call from a signal handler."""
        self.shutdown_asked = True

    def check(self) -> None:
        """Raise Interrupted when the run is to end; looks at the file a few times a second."""
        if self.shutdown_asked:
            raise Interrupted("shutdown")
        if time.monotonic() - self._looked >= LOOK_INTERVAL_S:
            self._look()
        wish = next((c.command for c in self._pending if c.command in ENDING), None)
        if wish is not None:
            raise Interrupted(wish)

    def take(self) -> list[ControlCommand]:
        """New commands since the last call, those that end the run left for `check`."""
        self._look()
        found = [command for command in self._pending if command.command not in ENDING]
        self._pending = [command for command in self._pending if command.command in ENDING]
        return found

    def take_endings(self) -> list[ControlCommand]:
        """The commands that end the run, once it is ending."""
        self._look()
        found = [command for command in self._pending if command.command in ENDING]
        self._pending = [command for command in self._pending if command not in found]
        return found

    def _look(self) -> None:
        self._looked = time.monotonic()
        for offset, line in list(whole_lines(self._path, self._offset)):
            self._offset = offset
            self._pending.extend(self._parse(line))

    def _parse(self, line: bytes) -> Iterable[ControlCommand]:
        """The command of a line, if it is one for this attempt that was not seen before."""
        try:
            command = ControlCommand.model_validate_json(line)
        except ValidationError:
            return
        if command.attempt == self._attempt and command.id not in self._seen:
            self._seen.add(command.id)
            yield command
