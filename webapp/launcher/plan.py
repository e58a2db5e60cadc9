"""Which processes `manage.py up` runs besides the engines, and with what command lines.

Called by `up.py`. TEMPER_WORKER_QUEUES says which queues this machine serves: a queue whose name
begins with `train` gets one slot for each GPU (one without any), every other queue two processes.
An empty value means none: a machine that serves only the web.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path

from webapp.launcher import value_rules
from webapp.launcher.child import ChildSpec
from webapp.launcher.errors import LauncherError
from webapp.launcher.paths import REPOSITORY

DEFAULT_QUEUES = "train,cpu"
TRAIN_PREFIX = "train"
CPU_PROCESSES = 2
WORKER_PATIENCE_S = 45.0  # runs write a checkpoint within 30 s and return to the queue
CELERY = [sys.executable, "-m", "celery", "-A", "workers.celery_app"]
PREPARE_MODEL = [sys.executable, "-m", "workers.prepare_model"]
WORKER_NAMES = ("worker-", "beat", "prepare-model")
WEB_NAME = "web"


def worker_queues() -> list[str]:
    """The queues that this machine serves."""
    chosen = os.environ.get("TEMPER_WORKER_QUEUES", DEFAULT_QUEUES)
    if wrong := value_rules.queues(chosen):
        raise LauncherError(f"TEMPER_WORKER_QUEUES {wrong}.")
    return list(dict.fromkeys(value_rules.split_list(chosen)))


def serves_training(queues: list[str]) -> bool:
    """Whether runs may be trained on this machine."""
    return any(name.startswith(TRAIN_PREFIX) for name in queues)


def worker(queue: str, gpu_slots: int) -> ChildSpec:
    """The Celery worker of one queue.

    A training task only supervises a process of its own, so threads carry it, one a slot; other
    tasks compute in Python and get processes.
    """
    if queue.startswith(TRAIN_PREFIX):
        pool, slots = "threads", max(1, gpu_slots)
    else:
        pool, slots = "prefork", CPU_PROCESSES
    options = [
        f"--queues={queue}",
        f"--hostname={queue}@%h",
        f"--pool={pool}",
        f"--concurrency={slots}",
        "--loglevel=INFO",
        "--without-gossip",
        "--without-mingle",
    ]
    return ChildSpec(
        f"worker-{queue}", [*CELERY, "worker", *options], REPOSITORY, WORKER_PATIENCE_S
    )


def beat(base: Path) -> ChildSpec:
    """The clock that sends periodic tasks; one for the whole installation."""
    (base / "beat").mkdir(parents=True, exist_ok=True)
    options = [f"--schedule={base / 'beat' / 'schedule'}", "--pidfile=", "--loglevel=INFO"]
    return ChildSpec("beat", [*CELERY, "beat", *options], REPOSITORY)


def web(listener: socket.socket) -> ChildSpec:
    """The ASGI server, on a socket that stays open while the server is started again."""
    descriptor = listener.fileno()
    command = [sys.executable, "-m", "webapp.launcher.serve", str(descriptor)]
    return ChildSpec(WEB_NAME, command, REPOSITORY, inherited=(descriptor,))


def model_preparation(done_text: Callable[[float], str]) -> ChildSpec:
    """The job that makes the bundled model ready; quick when it is already."""
    return ChildSpec(
        "prepare-model", PREPARE_MODEL, REPOSITORY, runs_once=True, done_text=done_text
    )
