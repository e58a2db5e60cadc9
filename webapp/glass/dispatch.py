"""Tell a worker of the train queue about a step under glass, once the database has it.

Called by `services` and by the reaper. Only the id crosses the queue; a lost message is sent again.
"""

from __future__ import annotations

from functools import partial
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from training_core.contract.tasknames import GLASS_STEP
from webapp.broker import send_task
from webapp.glass.models import GlassStep


def send_glass_on_commit(glass_id: UUID) -> None:
    """Send the step's id after the commit of the caller's transaction."""
    transaction.on_commit(partial(send_glass, glass_id), robust=True)


def send_glass(glass_id: UUID) -> bool:
    """Send the step's id now; whether the broker took it."""
    taken = send_task(GLASS_STEP, glass_id)
    if taken:
        waiting = GlassStep.objects.filter(pk=glass_id, state=GlassStep.State.WAITING)
        waiting.update(sent_at=timezone.now())
    return taken
