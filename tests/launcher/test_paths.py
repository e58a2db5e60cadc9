"""Addresses are computed, short, the same each time, and overridden by the environment."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from webapp.launcher import paths
from webapp.launcher.errors import LauncherError

LONGEST_SOCKET_PATH = 100
DEEP = Path("/" + "/".join(["a-rather-long-directory-name"] * 40))


def test_socket_paths_are_short_however_deep_the_data_lies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 2**32 - 2)
    postgres = paths.postgres_socket_dir(DEEP) / f".s.PGSQL.{paths.POSTGRES_PORT}"
    assert len(os.fsencode(postgres)) < LONGEST_SOCKET_PATH
    assert len(os.fsencode(paths.valkey_socket(DEEP))) < LONGEST_SOCKET_PATH


def test_urls_are_the_same_each_time_and_differ_between_directories() -> None:
    assert paths.embedded_database_url(DEEP) == paths.embedded_database_url(DEEP)
    assert paths.embedded_database_url(DEEP) != paths.embedded_database_url(DEEP / "b")
    assert paths.embedded_redis_url(DEEP) != paths.embedded_redis_url(DEEP / "b")


def test_a_symbolic_link_leads_to_the_same_sockets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    monkeypatch.setenv("TEMPER_DATA_DIR", str(tmp_path / "link"))
    assert paths.socket_dir() == paths.socket_dir((tmp_path / "real").resolve())


def test_the_data_directory_is_var_unless_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TEMPER_DATA_DIR")
    assert paths.data_dir() == paths.REPOSITORY / "var"
    monkeypatch.setenv("TEMPER_DATA_DIR", "~/elsewhere")
    assert paths.data_dir() == Path("~/elsewhere").expanduser().resolve()


def test_the_environment_overrides_both_urls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://someone@db.example/x")
    monkeypatch.setenv("REDIS_URL", "redis://cache.example:6380/2")
    assert paths.database_url() == "postgresql://someone@db.example/x"
    assert paths.redis_url() == paths.celery_broker_url() == "redis://cache.example:6380/2"
    assert not paths.uses_embedded_postgres()
    assert not paths.uses_embedded_valkey()


def test_an_empty_variable_counts_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "")
    monkeypatch.setenv("REDIS_URL", "")
    assert paths.database_url() == paths.embedded_database_url()
    assert paths.redis_url() == paths.embedded_redis_url()


def test_celery_gets_its_own_spelling_of_a_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDIS_URL", "unix:///tmp/x/valkey.sock?db=3")
    assert paths.celery_broker_url() == "redis+socket:///tmp/x/valkey.sock?virtual_host=3"


def test_django_and_libpq_read_the_same_url(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "p@ss/word%"
    url = f"postgresql://ann:{quote(secret, safe='')}@db.example:5433/lab?sslmode=require"
    entry = paths.databases_entry(url)
    libpq = psycopg.conninfo.conninfo_to_dict(url)
    assert (entry["USER"], entry["PASSWORD"]) == (libpq["user"], libpq["password"])
    assert (entry["HOST"], entry["PORT"]) == (libpq["host"], libpq["port"])
    assert (entry["NAME"], entry["OPTIONS"]) == (libpq["dbname"], {"sslmode": "require"})
    socket_entry = paths.databases_entry(paths.embedded_database_url(DEEP))
    assert socket_entry["HOST"] == str(paths.postgres_socket_dir(DEEP))


def test_another_kind_of_database_is_refused() -> None:
    with pytest.raises(LauncherError, match="needs PostgreSQL"):
        paths.databases_entry("sqlite:///db.sqlite3")


def test_the_socket_directory_is_private(base: Path) -> None:
    path = paths.ensure_socket_dir(base)
    assert path.stat().st_mode & 0o777 == 0o700
    path.chmod(0o777)
    assert paths.ensure_socket_dir(base).stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("kind", ["file", "link"])
def test_a_planted_socket_directory_is_refused(base: Path, tmp_path: Path, kind: str) -> None:
    path = paths.socket_dir(base)
    if kind == "file":
        path.touch()
    else:
        path.symlink_to(tmp_path)
    try:
        with pytest.raises(LauncherError, match="not a directory of this user"):
            paths.ensure_socket_dir(base)
    finally:
        path.unlink()
