"""Each check of `doctor` finds the fault that is planted for it, and says what to do."""

from __future__ import annotations

import importlib.metadata
import io
import json
import shutil
import sys
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.core.management import call_command
from django.utils import timezone

from tests.engines import Engines
from webapp.launcher import checks_machine, checks_state, paths
from webapp.launcher.diagnosis import Finding, run_check
from webapp.launcher.errors import LauncherError
from webapp.launcher.gpus import Gpu
from webapp.launcher.instance_lock import instance_lock
from webapp.workers_page.models import Worker


def expect(finding: Finding, status: str, *words: str) -> None:
    assert finding.status == status, finding
    for word in words:
        assert word in f"{finding.detail} {finding.remedy}", finding
    assert bool(finding.remedy) == (status != "OK")


def test_an_old_python(monkeypatch: pytest.MonkeyPatch) -> None:
    expect(checks_machine.python(), "OK", sys.executable)
    monkeypatch.setattr(sys, "version_info", (3, 10, 4))
    expect(checks_machine.python(), "FAIL", "3.10.4", "make setup")


@pytest.mark.parametrize(
    ("requirements", "status", "words"),
    [
        ("Django==0.0.1\n", "WARN", ["Django", "instead of 0.0.1"]),
        ("no-such-package[extra]==1.0  # note\n", "FAIL", ["missing: no-such-package"]),
        ("# nothing\n", "OK", []),
    ],
)
def test_packages_that_differ_from_the_pins(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    requirements: str,
    status: str,
    words: list[str],
) -> None:
    (tmp_path / "requirements.txt").write_text(requirements)
    monkeypatch.setattr(paths, "REPOSITORY", tmp_path)
    expect(checks_machine.packages(), status, *words)


def test_every_requirement_is_pinned() -> None:
    lines = (paths.REPOSITORY / "requirements.txt").read_text().splitlines()
    wanted = [line for line in lines if line and not line.startswith("#")]
    assert len(checks_machine.pins(paths.REPOSITORY / "requirements.txt")) == len(wanted)


def test_a_missing_model_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks_machine, "MODEL_WHEEL", "no-such-package")
    expect(checks_machine.model_wheel(), "FAIL", "make setup")


@pytest.mark.parametrize(("free_gb", "status"), [(1, "FAIL"), (5, "WARN"), (50, "OK")])
def test_little_disk(monkeypatch: pytest.MonkeyPatch, free_gb: int, status: str) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free_gb * 10**9))
    expect(checks_machine.disk(), status, f"{free_gb}.0 GB free")


@pytest.mark.parametrize(("limit_gb", "status"), [(1, "FAIL"), (4, "WARN")])
def test_little_memory_in_a_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit_gb: int, status: str
) -> None:
    (tmp_path / "memory.max").write_text(f"{limit_gb * 10**9}\n")
    (tmp_path / "unlimited").write_text("max\n")
    limits = (tmp_path / "unlimited", tmp_path / "memory.max", tmp_path / "none")
    monkeypatch.setattr(checks_machine, "CGROUP_LIMITS", limits)
    expect(checks_machine.memory(), status, f"{limit_gb}.0 GB")


def test_a_planted_socket_directory(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEMPER_DATA_DIR", str(base))
    paths.socket_dir(base).touch()
    expect(checks_machine.socket_directory(), "FAIL", str(paths.socket_dir(base)))
    paths.socket_dir(base).unlink()
    expect(checks_machine.socket_directory(), "OK")


def test_a_gpu_that_this_torch_cannot_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks_machine, "find_gpus", lambda: [Gpu(0, "Test 9000", 80 * 2**30)])
    monkeypatch.setattr(importlib.metadata, "version", lambda _: "2.13.0+cpu")
    expect(checks_machine.gpu(), "WARN", "GPU 0: Test 9000, 80 GiB", "CUDA build")
    monkeypatch.setattr(importlib.metadata, "version", lambda _: "2.13.0")
    expect(checks_machine.gpu(), "OK")


def test_no_browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("TEMPER_CHROMIUM", raising=False)
    expect(checks_machine.chromium(), "WARN", "TEMPER_CHROMIUM")
    (tmp_path / "google-chrome").touch(mode=0o755)
    expect(checks_machine.chromium(), "OK", str(tmp_path))


def test_whether_up_runs(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEMPER_DATA_DIR", str(base))
    expect(checks_state.running(), "WARN", "make run")
    with instance_lock(base):
        expect(checks_state.running(), "OK", "process")


def test_stopped_engines_are_tried(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEMPER_DATA_DIR", str(base))
    expect(checks_state.postgres(), "WARN", "a trial start took")
    expect(checks_state.valkey(), "WARN", "a trial start took")
    expect(checks_state.migrations(), "WARN", "no database")
    expect(checks_state.workers(), "WARN", "no database")


def test_an_engine_that_cannot_start(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEMPER_DATA_DIR", str(base))

    def no_trial(_: object) -> float:
        raise LauncherError("initdb failed: no space")

    monkeypatch.setattr(checks_state, "trial", no_trial)
    expect(run_check(checks_state.postgres), "FAIL", "no space")
    expect(run_check(checks_state.valkey), "FAIL", "no space")


def test_external_servers_that_refuse_without_showing_passwords(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://ann:geheim@127.0.0.1:9/x")
    monkeypatch.setenv("REDIS_URL", "redis://:geheim@127.0.0.1:9/0")
    for check in (checks_state.postgres, checks_state.valkey):
        finding = run_check(check)
        expect(finding, "FAIL", "127.0.0.1:9")
        assert "geheim" not in finding.detail


def test_running_engines(engines: Engines) -> None:
    expect(checks_state.postgres(), "OK", "18.")
    expect(checks_state.valkey(), "OK", "round trip")


@pytest.mark.django_db
def test_a_schema_behind_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    expect(checks_state.migrations(), "OK")
    monkeypatch.setattr(checks_state.database_steps, "pending_migrations", lambda: ["runs.0002"])
    expect(checks_state.migrations(), "FAIL", "runs.0002", "manage.py migrate")


@pytest.mark.django_db
def test_workers_that_are_silent_or_deaf() -> None:
    expect(checks_state.workers(), "WARN", "none has reported")
    now = timezone.now()
    worker = Worker.objects.create(
        name="train@host", pid=1, slots=1, started_at=now, seen_at=now, consuming_at=now
    )
    expect(checks_state.workers(), "OK", "train@host")
    worker.consuming_at = now - timedelta(minutes=5)
    worker.save()
    expect(checks_state.workers(), "FAIL", "hear nothing", "train@host")


@pytest.mark.parametrize(
    ("state", "status", "words"),
    [
        (None, "WARN", ["prepare-model.log"]),
        ("failed", "FAIL", ["no space", "prepare-model.log"]),
        ("running", "OK", ["in preparation"]),
        ("ready", "OK", ["2 MB"]),
    ],
)
def test_a_model_that_is_not_prepared(
    settings: SimpleNamespace, tmp_path: Path, state: str | None, status: str, words: list[str]
) -> None:
    settings.MODELS_DIR = tmp_path
    if state is not None:
        progress = {"state": state, "message": "no space", "updated_at": timezone.now().isoformat()}
        (tmp_path / "progress.json").write_text(json.dumps(progress))
    (tmp_path / "model.safetensors").write_bytes(b"x" * 2_000_000)
    expect(checks_state.prepared_model(), status, *words)


def test_a_check_that_raises_is_a_finding() -> None:
    def some_check() -> Finding:
        raise OSError("no\nsuch thing")

    expect(run_check(some_check), "FAIL", "OSError: no such thing")


def test_the_command_answers_programs_and_ends_with_status_1(
    monkeypatch: pytest.MonkeyPatch, engines: Engines
) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 10, 4))
    monkeypatch.setattr(checks_state.database_steps, "pending_migrations", list)
    out = io.StringIO()
    with pytest.raises(SystemExit) as ending:
        call_command("doctor", "--json", stdout=out)
    assert ending.value.code == 1
    findings = json.loads(out.getvalue())
    assert {"check": "Python", "status": "FAIL"}.items() <= findings[0].items()
