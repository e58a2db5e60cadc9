"""The embedded PostgreSQL keeps its data through stops, kills and stale files."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from tests.launcher.conftest import is_running, wait_for
from webapp.launcher import identity, paths, postgres_files
from webapp.launcher.errors import LauncherError
from webapp.launcher.identity import as_nobody, caller, in_namespace
from webapp.launcher.postgres import EmbeddedPostgres


def remember(server: EmbeddedPostgres, word: str) -> None:
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS words (word text)")
        connection.execute("INSERT INTO words VALUES (%s)", [word])


def words(server: EmbeddedPostgres) -> list[str]:
    with psycopg.connect(server.url) as connection:
        return [row[0] for row in connection.execute("SELECT word FROM words ORDER BY word")]


def test_state_is_found_again_after_a_stop(base: Path) -> None:
    server = EmbeddedPostgres(base, disposable=True)
    server.start()
    remember(server, "kept")
    server.stop()
    assert not server.is_ready()
    assert server.running_process() is None
    again = EmbeddedPostgres(base, disposable=True)
    again.start()
    assert words(again) == ["kept"]


def test_committed_rows_outlive_kill_9(base: Path) -> None:
    server = EmbeddedPostgres(base)
    server.start()
    remember(server, "before the kill")
    postmaster = server.running_process()
    assert postmaster is not None
    postmaster.kill()
    EmbeddedPostgres(base).start()
    assert words(server) == ["before the kill"]


def test_durability_and_encoding_are_what_they_should_be(base: Path) -> None:
    server = EmbeddedPostgres(base)
    server.start()
    with psycopg.connect(server.url) as connection:
        shown = [
            connection.execute(f"SHOW {name}").fetchone()
            for name in ("fsync", "listen_addresses", "server_encoding", "timezone")
        ]
        collation = connection.execute("SELECT datcollate FROM pg_database").fetchone()
    assert shown == [("on",), ("",), ("UTF8",), ("UTC",)]
    assert collation == ("C.UTF-8",)
    assert stat.S_IMODE(server.cluster.stat().st_mode) == 0o700


def test_a_stale_lock_file_with_the_pid_of_a_stranger_does_not_matter(
    base: Path, sleeper: Callable[[], subprocess.Popen[bytes]]
) -> None:
    server = EmbeddedPostgres(base, disposable=True)
    server.start()
    remember(server, "kept")
    lock = server.cluster / "postmaster.pid"
    text = lock.read_text()
    server.stop()
    stranger = sleeper()
    lock.write_text(text.replace(text.partition("\n")[0], str(stranger.pid), 1))
    assert server.running_process() is None
    server.start()
    assert words(server) == ["kept"]
    assert is_running(stranger.pid)


def test_a_server_left_by_a_killed_starter_is_replaced(base: Path) -> None:
    left = EmbeddedPostgres(base, disposable=True)
    left.start()
    remember(left, "kept")
    before = left.running_process()
    server = EmbeddedPostgres(base, disposable=True)
    server.start()
    after = server.running_process()
    assert before is not None
    assert after is not None
    assert before.pid != after.pid
    assert words(server) == ["kept"]


def test_a_half_made_cluster_is_made_anew(base: Path) -> None:
    half = base / "postgres" / "data.new"
    half.mkdir(parents=True)
    (half / "PG_VERSION").write_text("18\n")
    server = EmbeddedPostgres(base, disposable=True)
    server.start()
    assert server.is_ready()
    assert not half.exists()


def test_two_data_directories_at_once(new_base: Callable[[], Path]) -> None:
    one, two = (
        EmbeddedPostgres(new_base(), disposable=True),
        EmbeddedPostgres(new_base(), disposable=True),
    )
    one.start()
    two.start()
    remember(one, "one")
    remember(two, "two")
    one.stop()
    assert words(two) == ["two"]


def test_a_cluster_of_another_version_is_refused(base: Path) -> None:
    server = EmbeddedPostgres(base, disposable=True)
    server.start()
    server.stop()
    (server.cluster / "PG_VERSION").write_text("12\n")
    with pytest.raises(LauncherError, match="made by PostgreSQL 12, installed is 18"):
        server.start()


def test_a_broken_cluster_is_told_with_the_words_of_the_server(base: Path) -> None:
    server = EmbeddedPostgres(base, disposable=True)
    server.start()
    server.stop()
    (server.cluster / "global" / "pg_control").unlink()
    with pytest.raises(LauncherError, match="could not find the database system"):
        server.start()


def test_a_disposable_server_dies_with_its_starter(base: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; "
        "from webapp.launcher.postgres import EmbeddedPostgres; "
        "s = EmbeddedPostgres(Path(sys.argv[1]), disposable=True); s.start(); "
        "print(s.running_process().pid, flush=True); time.sleep(600)"
    )
    starter = subprocess.Popen(
        [sys.executable, "-c", code, str(base)], stdout=subprocess.PIPE, cwd=paths.REPOSITORY
    )
    assert starter.stdout is not None
    pid = int(starter.stdout.readline())
    starter.send_signal(signal.SIGKILL)
    starter.wait()
    wait_for(lambda: not is_running(pid))


def test_an_ordinary_account_runs_it_as_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 65534)  # nobody has a passwd entry everywhere
    assert identity.choose_identity(Path("/bin/true")) == caller()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
@pytest.mark.parametrize("kind", ["namespace", "nobody"])
def test_root_starts_it_as_somebody_else(base: Path, kind: str) -> None:
    chosen = in_namespace() if kind == "namespace" else as_nobody()
    assert chosen is not None
    server = EmbeddedPostgres(base, disposable=True)
    server.__dict__["identity"] = chosen
    server.start()
    remember(server, kind)
    assert words(server) == [kind]
    assert server.cluster.stat().st_uid == chosen.file_uid
    assert base.stat().st_uid == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
def test_nobody_gets_a_directory_and_binaries_it_can_reach(
    new_base: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    closed, system_home = new_base(), new_base()
    closed.chmod(0o700)
    monkeypatch.setattr(postgres_files, "SYSTEM_HOME", system_home)
    server = EmbeddedPostgres(closed, disposable=True)
    chosen = as_nobody()
    assert chosen is not None
    server.__dict__["identity"] = chosen
    server.start()
    assert server.home.parent == system_home
    assert server.is_ready()
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700
    server.stop()
