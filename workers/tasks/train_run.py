"""The task that carries one run from claim to end. It lives as long as the run."""

from __future__ import annotations

from uuid import UUID

from training_core.contract.tasknames import TRAIN_RUN
from webapp import lifecycle
from workers.celery_app import app
from workers.identity import THIS_WORKER
from workers.slots import DEVICES
from workers.supervisor import Supervisor
from workers.trainer_process import TRAINER_COMMAND


@app.task(name=TRAIN_RUN, ignore_result=True)
def train_run(run_id: str) -> None:
    """Claim the run and see it through; a second delivery finds nothing to claim."""
    claim = lifecycle.claim_run(UUID(run_id), THIS_WORKER.name, THIS_WORKER.boot)
    if claim is None:
        return
    with THIS_WORKER.busy_with(claim.run_id), DEVICES.take(claim.spec.resources.device) as device:
        Supervisor(claim, TRAINER_COMMAND, device=device, shutdown=THIS_WORKER.shutdown).run()
