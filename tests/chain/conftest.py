"""The whole line: real worker, real trainer, real browser."""

from __future__ import annotations

from tests.browser.conftest import chromium, server_url, shoot, watched  # noqa: F401 - fixtures
from tests.workers.conftest import alice, start_celery, start_worker  # noqa: F401 - fixtures
