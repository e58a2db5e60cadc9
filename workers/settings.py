"""Django settings of Celery workers: the web application's, with a connection for each thread.

Named by `workers.celery_app`. A supervisor lives for days and must notice a dead PostgreSQL, and a
living one, within seconds; a pool would hide both behind its own patience.
"""

from __future__ import annotations

from webapp.settings import *  # noqa: F403 - settings are one flat namespace
from webapp.settings import DATABASES as WEB_DATABASES

_web = WEB_DATABASES["default"]
DATABASES = {
    "default": {
        **_web,
        "OPTIONS": {
            **{name: value for name, value in _web["OPTIONS"].items() if name != "pool"},
            "connect_timeout": 5,
            "keepalives_idle": 5,
            "keepalives_interval": 2,
            "keepalives_count": 3,
            "tcp_user_timeout": 10_000,
        },
    }
}
