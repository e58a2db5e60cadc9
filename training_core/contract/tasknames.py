"""Names of Celery tasks and queues: the only thing that the web side and the workers share about
each other. A task's name, its function and its constant are the same word.
"""

from __future__ import annotations

QUEUE_TRAIN = "train"
"""Runs, steps under glass and tryouts; one at a time for each GPU slot."""
QUEUE_CPU = "cpu"
"""Short work without a device: imports, statistics, housekeeping."""

TRAIN_RUN = "train_run"
REAP_RUNS = "reap_runs"
IMPORT_DATASET = "import_dataset"
EXPORT_CHECKPOINT = "export_checkpoint"
WORKER_HEARTBEAT = "worker_heartbeat"
GLASS_STEP = "glass_step"
DELIVER_WEBHOOKS = "deliver_webhooks"

QUEUE_OF_TASK = {
    TRAIN_RUN: QUEUE_TRAIN,
    GLASS_STEP: QUEUE_TRAIN,
    REAP_RUNS: QUEUE_CPU,
    IMPORT_DATASET: QUEUE_CPU,
    EXPORT_CHECKPOINT: QUEUE_CPU,
    WORKER_HEARTBEAT: QUEUE_CPU,
    DELIVER_WEBHOOKS: QUEUE_CPU,
}
