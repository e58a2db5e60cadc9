"""The ASGI application that uvicorn serves."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import django
from django.core.handlers.asgi import ASGIHandler
from django.http import HttpResponseBadRequest

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
os.environ.setdefault("TEMPER_DATABASE_POOL", "true")

django.setup(set_prefix=False)

from asgiref.sync import sync_to_async  # noqa: E402 - the apps must be loaded first
from django.conf import settings  # noqa: E402

from webapp.api.auth import may_upload as may_upload_by_token  # noqa: E402
from webapp.body_limit import BodyLimit, Larger  # noqa: E402
from webapp.datasets.uploads import may_upload  # noqa: E402


class Handler(ASGIHandler):
    """Django's, which also answers 400 to a Content-Type that names an encoding that is none."""

    def create_request(self, scope: Mapping[str, Any], body_file: Any) -> Any:
        """(request, None), or (None, answer) where the headers cannot be read."""
        try:
            return super().create_request(scope, body_file)
        except ValueError:
            return None, HttpResponseBadRequest("The header Content-Type cannot be read.")


application = BodyLimit(
    Handler(),
    most_bytes=settings.MOST_BODY_BYTES,
    larger={
        "/datasets/upload/": Larger(settings.MOST_UPLOAD_BYTES, sync_to_async(may_upload)),
        "/api/v1/imports": Larger(settings.MOST_UPLOAD_BYTES, sync_to_async(may_upload_by_token)),
    },
)
