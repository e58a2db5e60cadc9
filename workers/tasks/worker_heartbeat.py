"""The canary: a small task that beat sends round, to prove that messages come through."""

from __future__ import annotations

from celery import Task

from training_core.contract.tasknames import WORKER_HEARTBEAT
from webapp import lifecycle
from workers.celery_app import app


@app.task(name=WORKER_HEARTBEAT, bind=True, ignore_result=True)
def worker_heartbeat(self: Task[[], None]) -> None:
    """Note on the worker's row that beat, broker and consumer are all alive."""
    lifecycle.canary_sang(self.request.hostname or "")
