"""Commands of people: each handed out once, to the attempt it is meant for."""

from __future__ import annotations

from pathlib import Path

import pytest

from training_core.contract.control import Command, ControlCommand
from training_core.contract.rundir import RunDir
from training_core.failures import Interrupted
from training_core.monitors import steering as steering_module
from training_core.monitors.steering import Steering


@pytest.fixture(autouse=True)
def look_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steering_module, "LOOK_INTERVAL_S", 0.0)


def ask(run_dir: RunDir, command: Command, command_id: str, attempt: int = 1) -> None:
    run_dir.append_control(
        ControlCommand(id=command_id, attempt=attempt, t=1.0, command=command, actor="somebody")
    )


def test_nothing_asked(tmp_path: Path) -> None:
    steering = Steering(RunDir(tmp_path), 1)
    steering.check()
    assert steering.take() == []


def test_requests_are_handed_out_once(tmp_path: Path) -> None:
    run_dir = RunDir(tmp_path)
    steering = Steering(run_dir, 1)
    ask(run_dir, "evaluate_now", "a")
    ask(run_dir, "checkpoint_now", "b")
    steering.check()
    assert [command.id for command in steering.take()] == ["a", "b"]
    ask(run_dir, "evaluate_now", "c")
    ask(run_dir, "evaluate_now", "a")
    assert [command.id for command in steering.take()] == ["c"]


@pytest.mark.parametrize("command", ["stop", "pause", "shutdown"])
def test_endings_interrupt_until_they_are_acknowledged(tmp_path: Path, command: Command) -> None:
    run_dir = RunDir(tmp_path)
    steering = Steering(run_dir, 1)
    ask(run_dir, "evaluate_now", "a")
    ask(run_dir, command, "b")
    assert [one.id for one in steering.take()] == ["a"]
    for _ in range(2):
        with pytest.raises(Interrupted) as caught:
            steering.check()
        assert caught.value.command == command
    assert [one.id for one in steering.take_endings()] == ["b"]
    steering.check()


def test_other_attempts_and_broken_lines_are_passed_over(tmp_path: Path) -> None:
    run_dir = RunDir(tmp_path)
    ask(run_dir, "stop", "a", attempt=1)
    with run_dir.control_file.open("ab") as file:
        file.write(b"nonsense\n")
    ask(run_dir, "checkpoint_now", "b", attempt=2)
    steering = Steering(run_dir, 2)
    steering.check()
    assert [command.id for command in steering.take()] == ["b"]


def test_a_line_that_is_still_being_written_is_read_when_it_is_whole(tmp_path: Path) -> None:
    run_dir = RunDir(tmp_path)
    ask(run_dir, "evaluate_now", "a")
    whole = run_dir.control_file.read_bytes()
    run_dir.control_file.write_bytes(whole[:20])
    steering = Steering(run_dir, 1)
    assert steering.take() == []
    run_dir.control_file.write_bytes(whole)
    assert [command.id for command in steering.take()] == ["a"]


def test_a_signal_ends_the_run_without_a_command(tmp_path: Path) -> None:
    steering = Steering(RunDir(tmp_path), 1)
    steering.ask_shutdown()
    with pytest.raises(Interrupted) as caught:
        steering.check()
    assert caught.value.command == "shutdown"
