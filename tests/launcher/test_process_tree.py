"""Children are restarted with back-off, stopped in order, and none is ever left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.launcher.conftest import IGNORE_SIGTERM, SLEEP, is_running, wait_for
from webapp.launcher.paths import REPOSITORY
from webapp.launcher.process_records import recorded_processes

NOTE_PID = "import os; open({0!r} + '.tmp', 'w').write(str(os.getpid())); "
NOTE_PID += "os.rename({0!r} + '.tmp', {0!r}); "
FAMILY = """
import subprocess, sys, time
for session in (False, True):
    subprocess.Popen([sys.executable, "-c", {0!r}.replace("NAME", str(session))],
                     start_new_session=session)
time.sleep(600)
"""
StartHost = Callable[..., "Host"]


class Host:
    """A process with a tree in it, and what it has said."""

    def __init__(self, base: Path, codes: dict[str, str], patience_s: float) -> None:
        self.output = base / f"said-{time.monotonic_ns()}"
        command = [sys.executable, "-m", "tests.launcher.tree_host", str(base)]
        command += [json.dumps(codes), str(patience_s)]
        with self.output.open("wb") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=out, cwd=REPOSITORY)

    def said(self, text: str) -> bool:
        return text in self.output.read_text()

    def stop(self, times: int = 1) -> None:
        for _ in range(times):
            self.process.send_signal(signal.SIGTERM)
            time.sleep(0.3)
        self.process.wait(30)


@pytest.fixture
def start_host(base: Path) -> Iterator[StartHost]:
    hosts: list[Host] = []

    def start(codes: dict[str, str], patience_s: float = 10.0) -> Host:
        hosts.append(Host(base, codes, patience_s))
        wait_for(lambda: hosts[-1].said("started"))
        return hosts[-1]

    yield start
    for host in hosts:
        if host.process.poll() is None:
            host.stop(times=2)


def pid_in(file: Path) -> int:
    wait_for(file.exists)
    return int(file.read_text())


def noting(file: Path, code: str) -> str:
    return NOTE_PID.format(str(file)) + code


def family(base: Path) -> tuple[str, list[Path]]:
    """A child with two grandchildren that ignore SIGTERM, one of them in its own session."""
    grandchild = IGNORE_SIGTERM + noting(base / "pid-NAME", SLEEP)
    return FAMILY.format(grandchild), [base / "pid-False", base / "pid-True"]


def test_a_dying_child_is_restarted_ever_more_slowly_and_told(
    start_host: StartHost, base: Path
) -> None:
    host = start_host({"worker-x": f"open({str(base / 'starts')!r}, 'a').write('x'); exit(3)"})
    (base / "starts").touch()
    wait_for(lambda: (base / "starts").read_text() == "xxx")
    assert host.said("worker-x ended unexpectedly (exit status 3); starting it again in 1 s")
    assert host.said("starting it again in 2 s")
    assert (base / "logs" / "worker-x.1.log").exists()
    host.stop()


def test_a_killed_child_comes_back(start_host: StartHost, base: Path) -> None:
    host = start_host({"web": noting(base / "pid", SLEEP)})
    first = pid_in(base / "pid")
    (base / "pid").unlink()
    os.kill(first, signal.SIGKILL)
    second = pid_in(base / "pid")
    assert first != second
    assert host.said("killed by SIGKILL")
    host.stop()
    assert not is_running(second)


def test_a_clean_stop_ends_grandchildren_that_ignore_sigterm(
    start_host: StartHost, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, files = family(base)
    host = start_host({"worker-x": code})
    grandchildren = [pid_in(file) for file in files]
    host.stop(times=2)  # the second one spares the test their ten seconds of grace
    assert host.said("stopped")
    assert not any(map(is_running, grandchildren))


def test_grandchildren_of_a_killed_child_are_adopted_and_ended(
    start_host: StartHost, base: Path
) -> None:
    code, files = family(base)
    host = start_host({"worker-x": noting(base / "parent", code)})
    grandchildren = [pid_in(file) for file in files]
    os.kill(pid_in(base / "parent"), signal.SIGKILL)
    wait_for(lambda: host.said("killed by SIGKILL"))
    host.stop(times=2)
    assert not any(map(is_running, grandchildren))


def test_a_child_that_does_not_answer_is_killed_after_its_patience(
    start_host: StartHost, base: Path
) -> None:
    host = start_host({"web": IGNORE_SIGTERM + noting(base / "pid", SLEEP)}, 1.0)
    pid = pid_in(base / "pid")
    host.stop()
    assert host.said("web is killed: no answer")
    assert not is_running(pid)


def test_workers_stop_before_the_web_server(start_host: StartHost, base: Path) -> None:
    order = base / "order"
    code = (
        "import signal, sys, time\n"
        "def end(*_): time.sleep({wait}); open({file!r}, 'a').write({name!r} + ' '); sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, end)\n"
        "open({file!r} + {name!r}, 'w').close()\n"
        "time.sleep(600)"
    )
    names = {"web": 0.0, "worker-a": 0.5, "beat": 0.0}
    host = start_host(
        {name: code.format(wait=wait, file=str(order), name=name) for name, wait in names.items()}
    )
    for name in names:
        wait_for((base / f"order{name}").exists)
    host.stop()
    assert order.read_text() == "worker-a web beat "


def test_what_a_killed_host_leaves_is_taken_down_by_the_next(
    start_host: StartHost, base: Path
) -> None:
    code, files = family(base)
    killed = start_host({"worker-x": code})
    grandchildren = [pid_in(file) for file in files]
    child = recorded_processes(base)["worker-x"].pid
    killed.process.kill()
    killed.process.wait()
    assert is_running(child)
    assert all(map(is_running, grandchildren))
    host = Host(base, {"web": SLEEP}, 10.0)
    wait_for(lambda: host.said("started"), 30)
    assert host.said("An earlier start was killed; ending the 3 processes it left.")
    assert not is_running(child)
    assert not any(map(is_running, grandchildren))
    host.stop()


def test_a_second_host_is_refused_with_the_first_one_named(
    start_host: StartHost, base: Path
) -> None:
    first = start_host({"web": SLEEP})
    second = Host(base, {"web": SLEEP}, 10.0)
    assert second.process.wait(20) != 0
    assert second.said(f"already runs in {base} (process {first.process.pid})")
    first.stop()
