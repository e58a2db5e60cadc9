"""People and signed-in clients for tests of pages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.core.cache import cache
from django.test import Client

from webapp.accounts.models import User


@pytest.fixture
def ada(db: None) -> User:
    """A person who owns runs."""
    return User.objects.create_user("ada", password="a-long-password")


@pytest.fixture
def bob(db: None) -> User:
    """Another one."""
    return User.objects.create_user("bob")


@pytest.fixture
def browser(ada: User, client: Client) -> Client:
    """Ada's browser."""
    client.force_login(ada)
    return client


@pytest.fixture(autouse=True)
def folders(request: pytest.FixtureRequest) -> None:
    """Runs, uploads and models of each test in folders of its own."""
    if "settings" not in request.fixturenames and "db" not in request.fixturenames:
        return
    settings = request.getfixturevalue("settings")
    tmp_path = request.getfixturevalue("tmp_path")
    for name in ("RUNS_DIR", "UPLOADS_DIR", "MODELS_DIR", "GLASS_DIR", "EXPORTS_DIR"):
        setattr(settings, name, tmp_path / name.lower())
        (tmp_path / name.lower()).mkdir(exist_ok=True)


@pytest.fixture(autouse=True)
def no_failed_attempts_kept() -> Iterator[None]:
    """The limit on failed sign-ins counts in the cache, which outlives a test's transaction."""
    cache.clear()
    yield
    cache.clear()
