"""The whole line: real worker, real trainer, and where a test asks for it, a real browser."""

from __future__ import annotations

from tests.workers.conftest import alice, start_celery, start_worker  # noqa: F401 - fixtures
