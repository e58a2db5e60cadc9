"""Index what the trainers of a run have written and nobody has read yet.

Called by the supervisor before its trainer starts and by the reaper before it judges a lost run:
a killed worker leaves events behind, and the curves must have no gap.
"""

from __future__ import annotations

from uuid import UUID

from webapp.control.batches import read_batch
from webapp.control.record import record_events
from webapp.runs.models import Attempt, Run


def catch_up(run_id: UUID) -> None:
    """Read every attempt's file from its bookmark to its end."""
    run = Run.objects.get(pk=run_id)
    for attempt in Attempt.objects.filter(run=run).order_by("number"):
        path = run.run_dir.events_file(attempt.number)
        batch = read_batch(path, attempt.ingest_offset)
        while not batch.is_empty:
            record_events(run_id, attempt.number, batch)
            batch = read_batch(path, batch.offset)
