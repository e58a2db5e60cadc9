"""Tell a worker of the cpu queue about an export, once the database has it.

Called by `webapp.registry.services`. Only the id crosses the queue; a lost message is sent again by
the reaper.
"""

from __future__ import annotations

from functools import partial
from uuid import UUID

from django.db import transaction

from training_core.contract.tasknames import EXPORT_CHECKPOINT
from webapp.broker import send_task


def send_export(export_id: UUID) -> None:
    """Send the export's id after the commit of the caller's transaction."""
    transaction.on_commit(partial(send_task, EXPORT_CHECKPOINT, export_id), robust=True)
