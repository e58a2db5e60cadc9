"""The ASGI application that uvicorn serves."""

from __future__ import annotations

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
os.environ.setdefault("TEMPER_DATABASE_POOL", "true")

_django = get_asgi_application()

from asgiref.sync import sync_to_async  # noqa: E402 - the apps must be loaded first
from django.conf import settings  # noqa: E402

from webapp.api.auth import may_upload as may_upload_by_token  # noqa: E402
from webapp.body_limit import BodyLimit, Larger  # noqa: E402
from webapp.datasets.uploads import may_upload  # noqa: E402

application = BodyLimit(
    _django,
    most_bytes=settings.MOST_BODY_BYTES,
    larger={
        "/datasets/upload/": Larger(settings.MOST_UPLOAD_BYTES, sync_to_async(may_upload)),
        "/api/v1/imports": Larger(settings.MOST_UPLOAD_BYTES, sync_to_async(may_upload_by_token)),
    },
)
