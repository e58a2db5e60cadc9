"""The real Celery application, but its trainers play the scene that the run is named after.

`celery -A tests.workers.scripted_app worker ...`: everything up to the process border is real.
"""

from __future__ import annotations

from workers.celery_app import app

app.conf.imports = (*app.conf.imports, "tests.workers.scripted_trainer")
