"""Turn events of a trainer into rows: the one place where the index of a run directory is written.

Called by the supervisor as events appear, by `catch_up` for what a dead worker left, and by
`reingest` for everything from the start. One transaction a batch: rows and the byte offset move
together, so a batch is in whole or not at all, and an event that is told twice changes nothing (its
`seq` is not above the attempt's `last_seq`). Events are taken in every state and from every
attempt: they are facts. What only the newest attempt may change is the run's own row.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from uuid import UUID

from django.db import Error as DatabaseError
from django.db import transaction

from training_core.contract.events import AttemptFinished, Event
from webapp.control.batches import BadLine, Batch
from webapp.control.claims import LeaseLost
from webapp.control.ledger import Ledger
from webapp.control.notices import add_notice
from webapp.metrics import live
from webapp.runs.models import Attempt, Run
from webapp.runs.moves import lock_run

logger = logging.getLogger(__name__)


def record_events(run_id: UUID, attempt_number: int, batch: Batch) -> bool:
    """Store a batch; whether it held the attempt's last event.

    An event that cannot be stored is left out with a notice on the run: a fault here must not hide
    what comes after it, and never stops the training. Raises LeaseLost when the run was deleted,
    and a database error when the database itself cannot be reached.
    """
    try:
        _record(run_id, attempt_number, batch)
    except DatabaseError:
        raise
    except (Run.DoesNotExist, Attempt.DoesNotExist) as gone:
        raise LeaseLost(f"run {run_id} was deleted") from gone
    except Exception:
        logger.exception("A batch of run %s could not be stored; trying each event", run_id)
        _record_one_by_one(run_id, attempt_number, batch)
    return any(isinstance(event, AttemptFinished) for event in batch.events)


@transaction.atomic
def replay_events(run_id: UUID, attempt_number: int, batch: Batch) -> None:
    """The same for `reingest`: no state moves, and open pages are not told event by event."""
    _store(run_id, attempt_number, batch, is_replay=True)


@transaction.atomic
def _record(run_id: UUID, attempt_number: int, batch: Batch) -> None:
    """One batch in one transaction."""
    ledger = _store(run_id, attempt_number, batch, is_replay=False)
    for topic, kind, data in ledger.hints():
        live.publish(topic, kind, data)


def _store(run_id: UUID, attempt_number: int, batch: Batch, *, is_replay: bool) -> Ledger:
    """Apply what is new in a batch and move the attempt's bookmark."""
    run = lock_run(run_id)
    attempt = Attempt.objects.select_for_update(no_key=True).get(run=run, number=attempt_number)
    ledger = Ledger(run, attempt, is_replay=is_replay)
    _note_bad_lines(ledger, batch.bad_lines)
    for event in batch.events:
        if event.seq <= attempt.last_seq:
            continue
        _note_gap(ledger, event)
        ledger.apply(event)
        attempt.last_seq = event.seq
    attempt.ingest_offset = max(attempt.ingest_offset, batch.offset)
    ledger.close()
    return ledger


def _record_one_by_one(run_id: UUID, attempt_number: int, batch: Batch) -> None:
    """Each event in a transaction of its own; one that cannot be stored becomes a notice."""
    for event in batch.events:
        single = Batch((event,), (), 0)
        try:
            _record(run_id, attempt_number, single)
        except DatabaseError:
            raise
        except Exception as error:
            logger.exception("Event %d of run %s is left out", event.seq, run_id)
            _leave_out(run_id, attempt_number, event, f"{type(error).__name__}: {error}")
    _record(run_id, attempt_number, Batch((), batch.bad_lines, batch.offset))


@transaction.atomic
def _leave_out(run_id: UUID, attempt_number: int, event: Event, reason: str) -> None:
    """Pass over one event, and say so."""
    run = lock_run(run_id)
    attempt = Attempt.objects.select_for_update(no_key=True).get(run=run, number=attempt_number)
    add_notice(
        attempt,
        seq=event.seq,
        step=attempt.last_step,
        level="warning",
        code="event_left_out",
        message=f"Event {event.seq} ({event.kind}) could not be stored: {reason}. The run goes on; "
        "its file has the event.",
        t=event.t,
    )
    attempt.last_seq = max(attempt.last_seq, event.seq)
    attempt.save(update_fields=["last_seq"])


def _note_bad_lines(ledger: Ledger, bad_lines: Sequence[BadLine]) -> None:
    """A notice for each line that is no event."""
    for bad in bad_lines:
        if bad.offset > ledger.attempt.ingest_offset:
            add_notice(
                ledger.attempt,
                seq=-bad.offset,
                step=ledger.attempt.last_step,
                level="warning",
                code="bad_event",
                message=f"A line of events.jsonl before byte {bad.offset} is no event: "
                f"{bad.reason}. It was passed over.",
                t=ledger.last_t,
            )


def _note_gap(ledger: Ledger, event: Event) -> None:
    """Sequence numbers have no gaps; where they do, points are missing and a person must know."""
    missing = event.seq - ledger.attempt.last_seq - 1
    if missing > 0:
        add_notice(
            ledger.attempt,
            seq=event.seq,
            step=ledger.attempt.last_step,
            level="warning",
            code="events_missing",
            message=f"{missing} events before number {event.seq} are missing from the file.",
            t=event.t,
        )
