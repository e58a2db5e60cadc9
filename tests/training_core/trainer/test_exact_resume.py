"""A run that was killed, told to shut down or paused equals one that nobody disturbed, bit for bit.

Real trainer processes. Both runs of the drill are started before the first is waited for, since
most of a process's time is imports.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.training_core.trainer.runs import (
    Trainer,
    ask,
    assert_gapless,
    assert_same_run,
    hold_at,
    live_events,
    metric_rows,
    new_run,
    of_kind,
    read_events,
    released,
    run_here,
)
from training_core.contract.events import PhaseProgress, RolloutsWritten
from training_core.contract.rundir import RunDir

KILLED_IN, TOLD_IN = 9, 7


class Drill(NamedTuple):
    """Two runs, each of several attempts, with the exit code of each."""

    killed: RunDir
    killed_codes: list[int]
    told: RunDir
    told_codes: list[int]


@pytest.fixture(scope="module")
def drill(tmp_path_factory: pytest.TempPathFactory) -> Drill:
    killed = new_run(tmp_path_factory.mktemp("killed"))
    told = new_run(tmp_path_factory.mktemp("told"))
    hold_at(killed, 1, KILLED_IN)
    fifo = hold_at(told, 1, TOLD_IN)
    ask(told, "checkpoint_now")
    first_killed, first_told = Trainer(killed), Trainer(told)
    first_killed.wait_for_step(KILLED_IN - 1)
    wait_until_inside(first_killed, KILLED_IN)
    os.kill(first_killed.process.pid, signal.SIGKILL)
    codes = [first_killed.wait()]
    second_killed = Trainer(killed, 2)
    wait_until_inside(first_told, TOLD_IN)
    os.kill(first_told.process.pid, signal.SIGTERM)
    with released(fifo):
        told_codes = [first_told.wait()]
    hold_at(told, 2, TOLD_IN + 2)
    second_told = Trainer(told, 2)
    codes.append(second_killed.wait())
    wait_until_inside(second_told, TOLD_IN + 2)
    assert second_told.process.stdin is not None
    second_told.process.stdin.close()
    told_codes.append(second_told.wait())
    return Drill(killed, codes, told, told_codes)


def wait_until_inside(trainer: Trainer, step: int) -> None:
    """Until the trainer has scored that step's rollouts; it is then held by the FIFO."""
    trainer.wait_for(
        lambda event: (
            isinstance(event, PhaseProgress)
            and (event.step, event.phase, event.done > 0) == (step, "reward", True)
        )
    )


def test_killed_and_resumed(drill: Drill, whole: RunDir) -> None:
    assert drill.killed_codes == [-signal.SIGKILL, 0]
    (start,) = of_kind(read_events(drill.killed, 2), "attempt_started")
    assert (start.start_step, start.checkpoint) == (6, "checkpoints/step-000006")
    assert_same_run(drill.killed, whole)


def test_a_kill_forces_steps_to_be_done_again(drill: Drill) -> None:
    """Steps 7 and 8 stand in both attempts' files, with the same values."""
    both = [
        {e.step: e.values for e in of_kind(read_events(drill.killed, k), "metrics")} for k in (1, 2)
    ]
    assert {7, 8} <= both[0].keys() & both[1].keys()
    assert KILLED_IN not in both[0]


def test_rollouts_that_are_done_again_are_the_same(drill: Drill) -> None:
    for step in (7, 8):
        first, second = (
            drill.killed.rollout_file(attempt, "train", step).read_bytes() for attempt in (1, 2)
        )
        assert first == second != b""


def test_events_have_no_gap(drill: Drill, whole: RunDir) -> None:
    for run_dir in (drill.killed, drill.told, whole):
        assert_gapless(run_dir)


def test_no_metric_stands_twice(drill: Drill) -> None:
    assert all(len(values) == 1 for values in metric_rows(drill.killed).values())


def test_sigterm_saves_the_last_whole_step_and_says_so(drill: Drill) -> None:
    events = read_events(drill.told, 1)
    finished = events[-1]
    assert finished.kind == "attempt_finished"
    assert (finished.outcome, finished.cause) == ("shutdown", "shutdown")
    assert drill.told_codes[0] == 0
    (start,) = of_kind(read_events(drill.told, 2), "attempt_started")
    assert start.start_step == finished.step >= TOLD_IN - 1
    assert of_kind(events, "checkpoint")[-1].step == finished.step


def test_the_end_of_stdin_ends_the_process_at_once(drill: Drill) -> None:
    """Held between sampling and update it could do nothing else: it leaves without a last word."""
    assert drill.told_codes[1] == 75
    events = read_events(drill.told, 2)
    assert not of_kind(events, "attempt_finished")
    assert isinstance(events[-1], PhaseProgress)
    assert not [e for e in of_kind(events, "rollouts") if e.step == TOLD_IN + 2]


def test_shut_down_and_abandoned_and_resumed(drill: Drill, whole: RunDir) -> None:
    """The third attempt runs here; the requested checkpoint of the first changes nothing."""
    ending = run_here(drill.told, 3)
    assert (ending.outcome, ending.step) == ("succeeded", 12)
    assert_same_run(drill.told, whole)
    (applied,) = of_kind(read_events(drill.told, 1), "control")
    assert (applied.control_id, applied.result) == ("checkpoint_now-1", "done")


def test_the_console_says_how_it_ended(drill: Drill) -> None:
    assert "shutdown: The run was shut down" in drill.told.console_file(1).read_text()
    assert "succeeded: All stages are finished." in drill.killed.console_file(2).read_text()


def test_rollout_events_of_all_attempts_name_their_own_files(drill: Drill) -> None:
    found: list[RolloutsWritten] = of_kind(live_events(drill.killed), "rollouts")
    assert {Path(event.file).name[:2] for event in found} == {"a1", "a2"}
    for event in found:
        content = (drill.killed.root / event.file).read_bytes()
        part = content[event.offset_bytes : event.offset_bytes + event.length_bytes]
        assert part.count(b"\n") == event.groups
