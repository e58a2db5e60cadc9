"""The task that makes one export. It lives as long as the process that does the work."""

from __future__ import annotations

from uuid import UUID

from training_core.contract.tasknames import EXPORT_CHECKPOINT
from webapp import lifecycle
from workers.celery_app import app
from workers.exporter import Exporter


@app.task(name=EXPORT_CHECKPOINT, ignore_result=True)
def export_checkpoint(export_id: str) -> None:
    """Claim the export and make it; a second delivery finds nothing to claim."""
    claim = lifecycle.claim_export(UUID(export_id))
    if claim is not None:
        Exporter(claim).run()
