"""The task that keeps runs from being stuck; beat sends it every few seconds."""

from __future__ import annotations

from training_core.contract.tasknames import REAP_RUNS
from webapp import lifecycle
from workers.celery_app import app


@app.task(name=REAP_RUNS, ignore_result=True)
def reap_runs() -> None:
    """One round of the reaper."""
    lifecycle.reap()
