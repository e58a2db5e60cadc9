"""A host joins an installation only with its storage, its schema and its code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.architecture.sources import ROOT
from tests.launcher.conftest import wait_for
from webapp.launcher import code_version, database_steps, joining, paths
from webapp.launcher.errors import LauncherError
from webapp.launcher.joining import MARKER, leave_markers, require_same_installation
from webapp.launcher.postgres import EmbeddedPostgres
from webapp.launcher.valkey import EmbeddedValkey


@pytest.fixture
def shared(db: None, settings: SimpleNamespace, tmp_path: Path) -> Path:
    """The web host has been here."""
    for name in ("runs", "uploads", "glass", "exports", "models"):
        setattr(settings, f"{name.upper()}_DIR", tmp_path / name)
    leave_markers()
    return tmp_path


def told() -> str:
    with pytest.raises(LauncherError) as caught:
        require_same_installation()
    return str(caught.value)


def rewrite(shared: Path, **changes: str) -> None:
    """The folder is as another web host left it."""
    for marker in shared.glob(f"*/{MARKER}"):
        marker.write_text(json.dumps({**json.loads(marker.read_text()), **changes}))


def test_the_same_storage_code_and_schema(shared: Path) -> None:
    require_same_installation()
    left = [path.name for path in shared.rglob("*") if path.is_file()]
    assert left == [MARKER] * 5, "the trial of writing leaves nothing"
    assert json.loads((shared / "runs" / MARKER).read_text())["installation"]


def test_a_folder_that_is_not_mounted(shared: Path) -> None:
    (shared / "uploads" / MARKER).unlink()
    words = told()
    assert f"{shared / 'uploads'}" in words
    assert "is not the folder of the web host" in words
    assert str(shared / "runs") not in words


def test_storage_of_another_installation(shared: Path) -> None:
    rewrite(shared, installation="2001-01-01T00:00:00+00:00", host="elsewhere")
    assert "belongs to another installation (its web host was elsewhere)" in told()


def test_other_code_is_said_once(shared: Path) -> None:
    rewrite(shared, code="000000000000", host="web-1")
    words = told()
    assert words.count("The web host web-1 runs code 000000000000") == 1
    assert code_version.code_version() in words


def test_a_schema_behind_or_ahead(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    applied = database_steps.applied_migrations()
    monkeypatch.setattr(database_steps, "applied_migrations", lambda: applied - {max(applied)})
    assert "The database is behind this code" in told()
    tomorrow = ("runs", "9999_from_tomorrow")
    monkeypatch.setattr(database_steps, "applied_migrations", lambda: applied | {tomorrow})
    assert "ahead of this code, which lacks runs.9999_from_tomorrow" in told()


def test_a_folder_that_cannot_be_written(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(joining.Path, "write_bytes", refuse)
    assert f"{shared / 'runs'} cannot be written by this user: Permission denied" in told()


def test_a_torn_marker(shared: Path) -> None:
    (shared / "runs" / MARKER).write_text("{")
    assert "cannot be read" in told()


def test_the_code_version_is_that_of_the_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in code_version.PACKAGES:
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.py").write_text("x = 1\n")
    (tmp_path / "requirements.txt").write_text("a==1\n")
    monkeypatch.setattr(code_version, "REPOSITORY", tmp_path)
    compute = code_version.code_version.__wrapped__
    first = compute()
    assert first == compute()
    (tmp_path / "workers" / "a.py").write_text("x = 2\n")
    second = compute()
    (tmp_path / "requirements.txt").write_text("a==2\n")
    assert len({first, second, compute()}) == 3


class Host:
    """`up` of one host, with a data directory of its own."""

    def __init__(self, base: Path, *arguments: str, **more: str) -> None:
        self.output = base / f"said-{len(list(base.glob('said-*')))}"
        with self.output.open("wb") as out:
            self.process = subprocess.Popen(
                [sys.executable, str(ROOT / "manage.py"), "up", *arguments],
                stdout=out,
                stderr=out,
                env={
                    **os.environ,
                    "TEMPER_DATA_DIR": str(base),
                    "TEMPER_WORKER_QUEUES": "cpu",
                    **more,
                },
            )

    @property
    def text(self) -> str:
        return self.output.read_text()

    def wait_until_started(self) -> None:
        wait_for(lambda: "Ctrl+C stops" in self.text or self.process.poll() is not None, 60)
        assert self.process.poll() is None, self.text

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(60)


@pytest.fixture
def hosts() -> Iterator[list[Host]]:
    started: list[Host] = []
    yield started
    for host in reversed(started):
        host.stop()


def test_a_second_host_joins_by_one_command(
    new_base: Callable[[], Path], hosts: list[Host]
) -> None:
    web, second = new_base(), new_base()
    hosts.append(Host(web))
    hosts[0].wait_until_started()
    servers = {
        "DATABASE_URL": paths.embedded_database_url(web),
        "REDIS_URL": paths.embedded_redis_url(web),
    }
    alone = Host(second, "--workers-only", **servers)
    hosts.append(alone)
    assert alone.process.wait(60) == 1
    assert alone.text.count("is not the folder of the web host") == 5, alone.text
    assert "Traceback" not in alone.text

    for name in ("runs", "uploads", "glass", "exports", "models"):
        if (second / name).is_dir():
            (second / name).rmdir()
        (second / name).symlink_to(web / name)
    joined = Host(second, "--workers-only", **servers)
    hosts.append(joined)
    joined.wait_until_started()
    assert "same storage, code and schema as the web host" in joined.text
    assert not EmbeddedPostgres(second).running_process()
    assert not EmbeddedValkey(second).running_process()
    names = sorted(path.name for path in (second / "processes").iterdir())
    assert [name for name in names if name.startswith(("web", "beat"))] == []
    assert [name for name in names if name.startswith("worker-cpu")]
    joined.stop()
    assert joined.text.rstrip().endswith("Stopped.")
