"""The task that sends webhooks: one right after it was written, or all that are due, by beat."""

from __future__ import annotations

from uuid import UUID

from training_core.contract.tasknames import DELIVER_WEBHOOKS
from webapp import lifecycle
from workers.celery_app import app


@app.task(name=DELIVER_WEBHOOKS, ignore_result=True)
def deliver_webhooks(delivery_id: str = "") -> None:
    """Send it, or what is due; what was sent already is left alone."""
    if delivery_id:
        lifecycle.deliver_webhook(UUID(delivery_id))
    else:
        lifecycle.deliver_due_webhooks()
