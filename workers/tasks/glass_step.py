"""The task that takes one step under glass. It holds a slot of the train queue for seconds."""

from __future__ import annotations

import sys
from uuid import UUID

from training_core.contract.tasknames import GLASS_STEP
from webapp import lifecycle
from workers.celery_app import app
from workers.glass_keeper import GlassKeeper
from workers.identity import THIS_WORKER
from workers.slots import DEVICES

GLASS_COMMAND = (sys.executable, "-m", "workers.glass_main")


@app.task(name=GLASS_STEP, ignore_result=True)
def glass_step(glass_id: str) -> None:
    """Claim the step and see it through; a second delivery finds nothing to claim."""
    claim = lifecycle.claim_glass(UUID(glass_id), THIS_WORKER.name)
    if claim is None:
        return
    with DEVICES.take(claim.spec.resources.device) as device:
        GlassKeeper(claim, GLASS_COMMAND, device=device, shutdown=THIS_WORKER.shutdown).run()
