"""Tell a worker of the cpu queue about an import, once the database has it.

Called by `webapp.datasets.services`. Only the id crosses the queue; a lost message is sent again by
the reaper.
"""

from __future__ import annotations

from functools import partial
from uuid import UUID

from django.db import transaction

from training_core.contract.tasknames import IMPORT_DATASET
from webapp.broker import send_task


def send_import(import_id: UUID) -> None:
    """Send the import's id after the commit of the caller's transaction."""
    transaction.on_commit(partial(send_task, IMPORT_DATASET, import_id), robust=True)
