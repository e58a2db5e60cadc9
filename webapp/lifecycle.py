"""The one door through which workers enter the web application.

`workers.*` imports nothing else of `webapp` but `webapp.broker` and the launcher; the rooms behind
the door are `webapp.control.*`, and nobody but this module opens them from outside. A run's way
through here: `claim_run`, `prepare_directory`, then `heartbeat`, `read_orders`, `record_events`
again and again, then `finish_attempt`. Beside it: `reap`, the workers' `worker_seen`, imports,
exports, and steps under glass (`claim_glass`, `tend_glass`, `finish_glass`).

What would surprise: any call may raise one of `DATABASE_DOWN` while PostgreSQL is away. The caller
keeps its trainer alive, calls `forget_connection` and tries again.
"""

from __future__ import annotations

from uuid import UUID

from django.db import InterfaceError, OperationalError, connections

from webapp.control.batches import BadLine, Batch, read_batch
from webapp.control.catch_up import catch_up
from webapp.control.claims import (
    LEASE,
    Claim,
    LeaseLost,
    Orders,
    claim_run,
    commands_sent,
    heartbeat,
    read_orders,
)
from webapp.control.directories import append_commands, prepare_directory
from webapp.control.finish import abandon_attempt, finish_attempt
from webapp.control.reap import disown_predecessor, reap
from webapp.control.record import record_events
from webapp.control.reingest import reingest
from webapp.control.verdicts import Verdict
from webapp.datasets.services import run_import
from webapp.glass.claims import (
    GlassClaim,
    cancel_claimed_glass,
    claim_glass,
    finish_glass,
    release_glass,
    tend_glass,
)
from webapp.metrics import live
from webapp.registry.services import ExportClaim, claim_export, finish_export, report_export
from webapp.runs.status import RunState
from webapp.webhooks.services import deliver as deliver_webhook
from webapp.webhooks.services import deliver_due as deliver_due_webhooks
from webapp.workers_page.services import WorkerFacts, canary_sang, worker_gone, worker_seen

__all__ = [
    "DATABASE_DOWN",
    "LEASE",
    "BadLine",
    "Batch",
    "Claim",
    "ExportClaim",
    "GlassClaim",
    "LeaseLost",
    "Orders",
    "RunState",
    "Verdict",
    "WorkerFacts",
    "abandon_attempt",
    "append_commands",
    "canary_sang",
    "cancel_claimed_glass",
    "catch_up",
    "claim_export",
    "claim_glass",
    "claim_run",
    "commands_sent",
    "console_grew",
    "deliver_due_webhooks",
    "deliver_webhook",
    "disown_predecessor",
    "finish_attempt",
    "finish_export",
    "finish_glass",
    "forget_connection",
    "heartbeat",
    "prepare_directory",
    "read_batch",
    "read_orders",
    "reap",
    "record_events",
    "reingest",
    "release_glass",
    "report_export",
    "run_import",
    "tend_glass",
    "worker_gone",
    "worker_seen",
]

DATABASE_DOWN = (OperationalError, InterfaceError)
"""What a call raises while PostgreSQL cannot be reached, or has just been restarted."""


def forget_connection() -> None:
    """Close this thread's connection: one that an error broke is never used again."""
    connections.close_all()


def console_grew(run_id: UUID, attempt: int, size_bytes: int) -> None:
    """Tell open pages that the trainer has printed something."""
    hint = {"run": str(run_id), "attempt": attempt, "size_bytes": size_bytes}
    live.publish(live.run_topic(run_id), "log", hint)
