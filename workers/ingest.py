"""Follow one attempt's events file by byte offset and hand what is new to `lifecycle`.

Used by `workers.supervisor` several times a second. What would surprise: progress inside a step is
held back for up to a second when nothing else is new, since each batch is a transaction; anything
else goes at once.
"""

from __future__ import annotations

import os

from webapp import lifecycle

HOLD_PHASES_S = 0.8


class EventTail:
    """The bookmark in one events file."""

    def __init__(self, claim: lifecycle.Claim) -> None:
        self.claim = claim
        self.path = claim.run_dir.events_file(claim.attempt)
        self.offset = 0
        """Bytes that have become rows."""
        self.has_finished = False
        """Whether the trainer has said its last word."""
        self._last_sent = float("-inf")

    def has_grown(self) -> bool:
        """Whether there is anything beyond the bookmark; costs one system call."""
        try:
            return os.stat(self.path).st_size > self.offset
        except FileNotFoundError:
            return False

    def ingest(self, now: float) -> bool:
        """Store the next batch; whether there was one. Raises one of `DATABASE_DOWN`."""
        if not self.has_grown():
            return False
        batch = lifecycle.read_batch(self.path, self.offset)
        if batch.is_empty or self._may_wait(batch, now):
            return False
        self.store(batch)
        self._last_sent = now
        return True

    def drain(self) -> None:
        """Store all that is left, for a trainer that is gone."""
        batch = lifecycle.read_batch(self.path, self.offset)
        while not batch.is_empty:
            self.store(batch)
            batch = lifecycle.read_batch(self.path, self.offset)

    def store(self, batch: lifecycle.Batch) -> None:
        """Rows first, then the bookmark: a failure repeats the batch, which changes nothing."""
        has_last = lifecycle.record_events(self.claim.run_id, self.claim.attempt, batch)
        self.offset = batch.offset
        self.has_finished = self.has_finished or has_last

    def _may_wait(self, batch: lifecycle.Batch, now: float) -> bool:
        """Whether the batch is nothing but progress and the last one is fresh."""
        only_phases = not batch.bad_lines and all(e.kind == "phase" for e in batch.events)
        return only_phases and now - self._last_sent < HOLD_PHASES_S
