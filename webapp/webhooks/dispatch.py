"""Tell a worker of the cpu queue that a message waits, once the database has it.

Called by `outbox`. When the broker does not take it, beat's next round finds the row.
"""

from __future__ import annotations

from functools import partial
from uuid import UUID

from django.db import transaction

from training_core.contract.tasknames import DELIVER_WEBHOOKS
from webapp.broker import send_task


def send_delivery(delivery_id: UUID) -> None:
    """Send the delivery's id after the commit of the caller's transaction."""
    transaction.on_commit(partial(send_task, DELIVER_WEBHOOKS, delivery_id), robust=True)
