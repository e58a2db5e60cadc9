"""What `manage.py up` does inside Django before anything is served: schema and first data.

Called by `up.py` once the database answers.
"""

from __future__ import annotations

import functools
import io

from django.core.management import call_command
from django.db import connection, connections
from django.db.backends.postgresql.base import DatabaseWrapper
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.urls import set_urlconf

from webapp.launcher.addresses import public_url
from webapp.launcher.paths import data_dir

LINK_URLS = "webapp.launcher.link_urls"
MIGRATION_LOCK = 7_363_201  # any number, the same on each host


def migrate() -> int:
    """Bring the schema up to date, one host at a time; the number of migrations applied."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [MIGRATION_LOCK])
    try:
        count = len(pending_migrations())
        if count:
            call_command("migrate", interactive=False, verbosity=0)
        return count
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [MIGRATION_LOCK])


def pending_migrations() -> list[str]:
    """Migrations that the code has and the database has not."""
    executor = MigrationExecutor(connection)
    targets = executor.loader.graph.leaf_nodes()
    return [str(migration) for migration, _ in executor.migration_plan(targets)]


@functools.cache
def known_migrations() -> frozenset[tuple[str, str]]:
    """(app, name) of each migration that this code has; read from disk once a process."""
    return frozenset(MigrationLoader(None, ignore_no_migrations=True).graph.nodes)


def applied_migrations() -> frozenset[tuple[str, str]]:
    """(app, name) of each migration that the database has."""
    return frozenset(MigrationRecorder(connection).applied_migrations())


def count_tables() -> int:
    """Tables of this database, whoever made them."""
    with connection.cursor() as cursor:
        return len(connection.introspection.table_names(cursor))


def birth_mark() -> str:
    """What tells this installation's database from every other: the moment of its first migration.

    A backup carries it along. Empty for a database without a schema.
    """
    if not count_tables():
        return ""
    with connection.cursor() as cursor:
        cursor.execute("SELECT min(applied) FROM django_migrations")
        [applied] = cursor.fetchone()
    return applied.isoformat() if applied is not None else ""


def server_major() -> int:
    """Major version of the server."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version_num")
        return int(cursor.fetchone()[0]) // 10_000


def seed() -> None:
    """First data; the command does nothing where there is some."""
    call_command("seed", stdout=io.StringIO())


def database_size() -> int:
    """Bytes of this database."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_database_size(current_database())")
        return int(cursor.fetchone()[0])


def login_url(username: str | None = None) -> str:
    """A fresh one-time sign-in link, for the named user or the owner."""
    from webapp.accounts.models import User  # noqa: PLC0415 - the app registry must be ready
    from webapp.accounts.services import create_login_link, ensure_owner  # noqa: PLC0415

    user = User.objects.get(username=username) if username else ensure_owner()
    set_urlconf(LINK_URLS)
    try:
        return public_url(data_dir()) + create_login_link(user)
    finally:
        set_urlconf(None)


def disconnect() -> None:
    """Give up the connection and its pool: `up` lives long and needs it no more."""
    wrapper = connections[connection.alias]
    wrapper.close()
    if isinstance(wrapper, DatabaseWrapper):
        wrapper.close_pool()
