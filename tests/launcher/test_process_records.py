"""A pid alone never condemns a process."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.launcher.conftest import is_running
from webapp.launcher.leftovers import take_down_leftovers
from webapp.launcher.process_records import (
    INSTANCE_VARIABLE,
    instance_processes,
    record_path,
    recorded_processes,
    remember,
)

Sleeper = Callable[..., subprocess.Popen[bytes]]


def started(sleeper: Sleeper, base: Path) -> subprocess.Popen[bytes]:
    process = sleeper()
    remember(base, "worker-x", process.pid, list(map(str, process.args)))  # type: ignore[arg-type]
    return process


def test_a_recorded_process_is_found(sleeper: Sleeper, base: Path) -> None:
    process = started(sleeper, base)
    assert recorded_processes(base)["worker-x"].pid == process.pid


@pytest.mark.parametrize("field", ["start_ticks", "boot_id", "command"])
def test_a_reused_pid_is_left_alone(sleeper: Sleeper, base: Path, field: str) -> None:
    process = started(sleeper, base)
    path = record_path(base, "worker-x")
    record = json.loads(path.read_text())
    record[field] = {"start_ticks": 1, "boot_id": "another", "command": ["sleep"]}[field]
    path.write_text(json.dumps(record))
    assert recorded_processes(base) == {}
    assert take_down_leftovers(base, print) == 0
    assert is_running(process.pid)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}'])
def test_a_torn_record_is_ignored(base: Path, text: str) -> None:
    path = record_path(base, "web")
    path.parent.mkdir()
    path.write_text(text)
    assert recorded_processes(base) == {}


def test_an_orphan_is_known_by_its_environment(sleeper: Sleeper, base: Path) -> None:
    ours = sleeper(**{INSTANCE_VARIABLE: str(base)})
    other = sleeper(**{INSTANCE_VARIABLE: f"{base}-of-somebody-else"})
    assert [process.pid for process in instance_processes(base)] == [ours.pid]
    assert take_down_leftovers(base, print) == 1
    assert not is_running(ours.pid)
    assert is_running(other.pid)
