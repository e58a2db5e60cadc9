"""Whether this web server can serve: database, schema, Valkey, disk.

Called by the probe `/readyz` and by the figures. Degraded is not dead: without Valkey every page
still opens and runs wait a little, so only a database that is away or behind the code makes the
server unready. What would surprise: the answer is open to everybody, so its words name no address,
no path and no user; those are in the log. Looks are shared: at most one in LOOK_EVERY_S.
"""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, NamedTuple

import psycopg
import redis
from django.conf import settings
from django.db import connections

from webapp.launcher.database_steps import known_migrations

logger = logging.getLogger(__name__)

LOOK_EVERY_S = 2.0
CONNECT_TIMEOUT_S = 2
STATEMENT_TIMEOUT_MS = 3000
DISK_LOW_BYTES = 1_000_000_000
"""Less than one checkpoint of the small model: runs cannot save."""
State = Literal["ok", "degraded", "failed"]
ANSWERS: dict[State, str] = {"ok": "ready", "degraded": "degraded", "failed": "unready"}


class Part(NamedTuple):
    """One thing that the server needs."""

    name: str
    """database, migrations, valkey or disk."""
    state: State
    """`degraded`: pages work, something else does not. `failed`: pages do not work."""
    words: str
    """Why, and what to do."""


class Readiness(NamedTuple):
    """All parts at one moment."""

    parts: tuple[Part, ...]

    @property
    def state(self) -> State:
        """The worst of the parts."""
        found = {part.state for part in self.parts}
        return "failed" if "failed" in found else "degraded" if "degraded" in found else "ok"

    def part(self, name: str) -> Part:
        """One part. Raises KeyError for a name that no part has."""
        return {part.name: part for part in self.parts}[name]

    def as_document(self) -> dict[str, Any]:
        """The answer as JSON."""
        return {"status": ANSWERS[self.state], "parts": [part._asdict() for part in self.parts]}


class Looks:
    """Remembers the last look, so that no number of askers opens more than one connection."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: Readiness | None = None
        self._until = 0.0

    def newest(self) -> Readiness:
        """A look that is not older than LOOK_EVERY_S."""
        with self._lock:
            if self._last is None or time.monotonic() >= self._until:
                before, self._last = self._last, look()
                self._until = time.monotonic() + LOOK_EVERY_S
                if before is not None and before.state != self._last.state:
                    logger.warning("Readiness is now %s: %s", self._last.state, self._last.parts)
            return self._last

    def forget(self) -> None:
        """The next asker looks anew."""
        with self._lock:
            self._last = None


LOOKS = Looks()


def look() -> Readiness:
    """Ask every part now."""
    return Readiness((*_look_at_database(), _look_at_valkey(), _look_at_disk()))


def _look_at_database() -> tuple[Part, Part]:
    """A connection of its own, since the pool may be what is exhausted; then the schema."""
    try:
        with _connect() as connection:
            applied = _applied(connection)
    except (psycopg.Error, OSError) as error:
        logger.warning("The database does not answer: %s", error)
        down = "It does not answer; the log of the web server says why."
        return (
            Part("database", "failed", down),
            Part("migrations", "failed", "Not looked at: the database does not answer."),
        )
    missing = known_migrations() - applied
    if missing:
        words = f"{len(missing)} not applied: run `manage.py up` or `manage.py migrate`."
        return Part("database", "ok", "It answers."), Part("migrations", "failed", words)
    return Part("database", "ok", "It answers."), Part("migrations", "ok", "All are applied.")


def _connect() -> psycopg.Connection[Any]:
    """A plain connection that gives up soon. Raises psycopg.Error."""
    parameters = connections["default"].get_connection_params()
    for name in ("cursor_factory", "context", "prepare_threshold"):
        parameters.pop(name, None)
    options = f"{parameters.pop('options', '')} -c statement_timeout={STATEMENT_TIMEOUT_MS}"
    limits = {"connect_timeout": CONNECT_TIMEOUT_S, "options": options.strip()}
    return psycopg.connect(**{**parameters, **limits}, autocommit=True)


def _applied(connection: psycopg.Connection[Any]) -> frozenset[tuple[str, str]]:
    """(app, name) of each migration that the database has."""
    try:
        rows = connection.execute("SELECT app, name FROM django_migrations").fetchall()
    except psycopg.errors.UndefinedTable:
        return frozenset()
    return frozenset((str(app), str(name)) for app, name in rows)


def _look_at_valkey() -> Part:
    """A ping."""
    try:
        with redis.Redis.from_url(
            settings.REDIS_URL,
            socket_timeout=CONNECT_TIMEOUT_S,
            socket_connect_timeout=CONNECT_TIMEOUT_S,
        ) as client:
            client.ping()
    except (redis.RedisError, OSError, ValueError) as error:
        logger.warning("Valkey does not answer: %s", error)
        words = "It does not answer. Pages work; new runs start when it is back."
        return Part("valkey", "degraded", words)
    return Part("valkey", "ok", "It answers.")


def _look_at_disk() -> Part:
    """Room for the next checkpoint, on the disks of state and of runs."""
    try:
        free = min(shutil.disk_usage(folder).free for folder in _folders())
    except OSError as error:
        logger.warning("The data directory cannot be looked at: %s", error)
        words = "The data directory cannot be read: is its disk mounted?"
        return Part("disk", "degraded", words)
    words = f"{free / 1e9:.1f} GB are free."
    if free < DISK_LOW_BYTES:
        return Part("disk", "degraded", f"{words} Runs cannot save checkpoints: make room.")
    return Part("disk", "ok", words)


def _folders() -> Iterable[Path]:
    """Where state lies; all of them are made when the installation starts."""
    return [Path(settings.DATA_DIR), Path(settings.UPLOADS_DIR)]
