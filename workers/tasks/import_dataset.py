"""The task that turns an uploaded file into a dataset version."""

from __future__ import annotations

from uuid import UUID

from training_core.contract.tasknames import IMPORT_DATASET
from webapp import lifecycle
from workers.celery_app import app


@app.task(name=IMPORT_DATASET, ignore_result=True)
def import_dataset(import_id: str) -> None:
    """Do the import; a second delivery of the same one does nothing."""
    lifecycle.run_import(UUID(import_id))
