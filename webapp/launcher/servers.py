"""The two servers that state lives in: embedded ones are started, external ones are tried.

Called by `up.py`. An external server that does not answer ends `up` with its address (never its
password) and the server's own words.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import redis

from webapp.launcher import paths
from webapp.launcher.console import Console, readable_size, size_of
from webapp.launcher.errors import LauncherError
from webapp.launcher.postgres import EmbeddedPostgres
from webapp.launcher.process_tree import ProcessTree
from webapp.launcher.valkey import EmbeddedValkey

CONNECT_TIMEOUT_S = 5


def start_postgres(tree: ProcessTree, base: Path, console: Console) -> None:
    """PostgreSQL: the embedded one, or a look at the one DATABASE_URL names."""
    with console.step("PostgreSQL") as notes:
        if paths.uses_embedded_postgres():
            engine = EmbeddedPostgres(base)
            tree.start_engine("PostgreSQL", engine)
            notes += [readable_size(size_of(engine.home)), str(engine.home)]
            notes += filter(None, [engine.identity.words])
        else:
            notes += [f"external, version {try_database()}"]


def start_valkey(tree: ProcessTree, base: Path, console: Console) -> None:
    """Valkey: the embedded one, or a look at the one REDIS_URL names."""
    with console.step("Valkey") as notes:
        if paths.uses_embedded_valkey():
            tree.start_engine("Valkey", EmbeddedValkey(base))
            notes += ["in memory"]
        else:
            notes += [f"external, version {try_redis()}"]


def try_database() -> str:
    """The version of the server behind DATABASE_URL."""
    url = paths.database_url()
    paths.databases_entry(url)  # refuses anything but PostgreSQL
    try:
        with psycopg.connect(url, connect_timeout=CONNECT_TIMEOUT_S) as connection:
            return str(connection.info.parameter_status("server_version"))
    except psycopg.Error as error:
        raise LauncherError(f"DATABASE_URL ({without_password(url)}): {error}") from error


def try_redis() -> str:
    """The version of the server behind REDIS_URL."""
    url = paths.redis_url()
    try:
        client = redis.Redis.from_url(
            url, socket_timeout=CONNECT_TIMEOUT_S, socket_connect_timeout=CONNECT_TIMEOUT_S
        )
        with client:
            facts = client.info("server")
            return str(facts.get("valkey_version") or facts["redis_version"])
    except (redis.RedisError, ValueError) as error:
        raise LauncherError(f"REDIS_URL ({without_password(url)}): {error}") from error


def without_password(url: str) -> str:
    """The address as it may be shown."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
