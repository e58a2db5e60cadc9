"""Replaces the trainer's command in a worker. Imported by Celery when Django is ready."""

from __future__ import annotations

import sys

from tests.workers.scripted import BY_NAME
from workers.tasks import train_run

train_run.TRAINER_COMMAND = (sys.executable, "-m", "tests.workers.scripted", BY_NAME)
