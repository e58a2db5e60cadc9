"""Read new whole lines of an events file as events.

Called by `workers.ingest` (live), and by `catch_up` and `reingest` (afterwards). A torn last line
is left for the next time; a whole line that is no event is reported, not raised: one bad line must
not hide what comes after it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from training_core.contract.events import EVENT, Event
from training_core.contract.rundir import whole_lines

MAX_EVENTS = 500
"""In one transaction: small enough that the run's row is never locked for long."""


@dataclass(frozen=True)
class BadLine:
    """A whole line that is no event."""

    offset: int
    """Byte offset after the line."""
    reason: str


@dataclass(frozen=True)
class Batch:
    """Events that stand next to each other in one attempt's file."""

    events: tuple[Event, ...]
    bad_lines: tuple[BadLine, ...]
    offset: int
    """Byte offset after the last line that was read."""

    @property
    def is_empty(self) -> bool:
        """Whether there was nothing new."""
        return not self.events and not self.bad_lines


def read_batch(path: Path, offset: int) -> Batch:
    """The next lines from `offset` on, at most MAX_EVENTS."""
    events: list[Event] = []
    bad_lines: list[BadLine] = []
    for after, line in whole_lines(path, offset):
        offset = after
        try:
            events.append(EVENT.validate_json(line))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            bad_lines.append(BadLine(after, f"{first['msg']} (line: {line[:200]!r})"))
        if len(events) + len(bad_lines) >= MAX_EVENTS:
            break
    return Batch(tuple(events), tuple(bad_lines), offset)
