"""The Celery application: `celery -A workers.celery_app worker --queues=train --pool=threads`.

Queues: `train` carries runs, one thread a slot, and is served by workers of its own; `cpu` carries
short tasks. What would surprise:

- A message is a hint, the database row is the truth. Messages are acknowledged as a task begins, so
  a killed worker's message is gone; the reaper sends another.
- A `train` task lives as long as its run. Nothing is fetched ahead of it, so that a queued run
  never waits behind a busy worker while another is idle.
- The broker may vanish and come back at any time. Running tasks do not notice; the worker
  reconnects for ever, and restarts itself when it is connected but deaf (`workers.pulse`).
- Nothing here may import torch.
"""

from __future__ import annotations

import os
from logging.config import dictConfig
from typing import Any

from celery import Celery, signals

from training_core.contract.tasknames import DELIVER_WEBHOOKS, REAP_RUNS, WORKER_HEARTBEAT
from webapp.broker import SHARED_SETTINGS

os.environ["DJANGO_SETTINGS_MODULE"] = "workers.settings"
os.environ.setdefault("CELERY_SKIP_CHECKS", "1")  # `manage.py check` does; it would load all URLs

REAP_EVERY_S = 10.0
CANARY_EVERY_S = 15.0

app = Celery("temper")
app.conf.update(
    SHARED_SETTINGS,
    imports=(
        "workers.tasks.train_run",
        "workers.tasks.glass_step",
        "workers.tasks.reap_runs",
        "workers.tasks.import_dataset",
        "workers.tasks.export_checkpoint",
        "workers.tasks.worker_heartbeat",
        "workers.tasks.deliver_webhooks",
    ),
    task_acks_late=False,
    worker_prefetch_multiplier=1,
    worker_disable_prefetch=True,
    worker_enable_prefetch_count_reduction=False,
    worker_cancel_long_running_tasks_on_connection_loss=False,
    worker_enable_remote_control=False,
    worker_send_task_events=False,
    broker_connection_retry=True,
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    beat_schedule={
        "reap": {
            "task": REAP_RUNS,
            "schedule": REAP_EVERY_S,
            "options": {"expires": REAP_EVERY_S},
        },
        "webhooks": {
            "task": DELIVER_WEBHOOKS,
            "schedule": REAP_EVERY_S,
            "options": {"expires": REAP_EVERY_S},
        },
        "canary": {
            "task": WORKER_HEARTBEAT,
            "schedule": CANARY_EVERY_S,
            "options": {"expires": CANARY_EVERY_S},
        },
    },
)


@signals.setup_logging.connect
def use_our_logging(**_: Any) -> None:
    """Django's logging instead of Celery's: it hides secrets and can write JSON."""
    from django.conf import settings  # noqa: PLC0415 - the variable above names them first

    dictConfig(settings.LOGGING)


app.steps["worker"].add("workers.steps:Pulse")
app.steps["consumer"].add("workers.steps:LoopTick")
