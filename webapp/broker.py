"""The web side's client of the task queue, and the Celery settings that both sides share.

The only module of the web side that knows Celery. Called by the `dispatch` modules of the apps and
read by `workers.celery_app`. A message is a hint: it carries a task's name and the id of a row, and
when the broker is down `send_task` says so and nothing is lost, since the reaper sends it again.
"""

from __future__ import annotations

import logging
from typing import Any

from celery import Celery
from kombu.exceptions import KombuError

from training_core.contract.tasknames import QUEUE_OF_TASK
from webapp.launcher import paths

logger = logging.getLogger(__name__)

SEND_TIMEOUT_S = 3.0

SHARED_SETTINGS: dict[str, Any] = {
    "broker_url": paths.celery_broker_url(),
    "broker_connection_timeout": SEND_TIMEOUT_S,
    "broker_transport_options": {
        "socket_connect_timeout": SEND_TIMEOUT_S,
        "socket_keepalive": True,
        "health_check_interval": 10,
        # A message that was taken but not acknowledged comes back after this long. Harmless at any
        # value: the second delivery finds the row claimed.
        "visibility_timeout": 3600,
    },
    "task_ignore_result": True,
    "result_backend": None,
    "task_serializer": "json",
    "accept_content": ["json"],
    "task_routes": {task: {"queue": queue} for task, queue in QUEUE_OF_TASK.items()},
    "task_create_missing_queues": True,
    "enable_utc": True,
    "timezone": "UTC",
}

_client = Celery("temper-web", set_as_current=False, fixups=[])
_client.conf.update(
    SHARED_SETTINGS,
    broker_transport_options={
        **SHARED_SETTINGS["broker_transport_options"],
        # A person waits for the page: kombu's own patience is six seconds.
        "socket_timeout": SEND_TIMEOUT_S,
        "max_retries": 1,
        "interval_start": 0,
        "interval_step": 0,
        "interval_max": 0,
    },
)


def send_task(name: str, row_id: object) -> bool:
    """Give a message to the broker; whether it took it. Never raises for a dead broker."""
    try:
        _client.send_task(
            name, args=[str(row_id)], queue=QUEUE_OF_TASK[name], retry=False, ignore_result=True
        )
    except (OSError, KombuError) as error:
        logger.warning("The broker did not take %s for %s: %s", name, row_id, error)
        return False
    return True
