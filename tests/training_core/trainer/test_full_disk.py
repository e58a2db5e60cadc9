"""A disk without room: the last good checkpoint stays, training goes on, the end is honest.

Files of this process are limited in size (RLIMIT_FSIZE), so that writing weights fails half-way,
for root and for everybody else, as it does on a full disk.
"""

from __future__ import annotations

import errno
import resource
import shutil
from collections import namedtuple
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.training_core.trainer.runs import (
    ask,
    assert_gapless,
    assert_same_run,
    new_run,
    of_kind,
    read_events,
    run_here,
)
from training_core.checkpoints import read_checkpoint, saved_steps
from training_core.contract.events import Event
from training_core.contract.rundir import RunDir

ROOM = 1_000_000
"""Bytes of a file: events and rollouts fit, weights do not."""
Usage = namedtuple("Usage", ["total", "used", "free"])


@pytest.fixture
def fill_disk() -> Iterator[Callable[[bool], None]]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(full: bool) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM if full else soft, hard))

    yield fill
    fill(False)


def logged(event: Event, step: int) -> bool:
    """Whether an event is the metrics of that step."""
    return event.kind == "metrics" and event.step == step and "time/step" in event.values


def test_a_disk_that_is_full_for_a_while(
    whole: RunDir, tmp_path: Path, fill_disk: Callable[[bool], None]
) -> None:
    run_dir = new_run(tmp_path)

    def listen(event: Event) -> None:
        if logged(event, 4):
            fill_disk(True)
        if logged(event, 7):
            assert saved_steps(run_dir) == [3]
            assert read_checkpoint(run_dir.checkpoint(3)).state.step == 3
            assert [path.name for path in run_dir.checkpoints.iterdir()] == ["step-000003"]
        if logged(event, 8):
            fill_disk(False)

    ending = run_here(run_dir, 1, listen)
    assert (ending.outcome, ending.step) == ("succeeded", 12)
    events = read_events(run_dir)
    (notice,) = of_kind(events, "notice")
    assert (notice.code, notice.level, notice.step) == ("disk_full", "alarm", 4)
    assert "Free disk space" in notice.message
    # Saved at the first boundary with room, then as planned.
    assert [event.step for event in of_kind(events, "checkpoint")] == [3, 8, 9, 12]
    assert_same_run(run_dir, whole)
    assert_gapless(run_dir)


def test_a_run_whose_result_cannot_be_saved_does_not_succeed(
    whole: RunDir, tmp_path: Path, fill_disk: Callable[[bool], None]
) -> None:
    run_dir = new_run(tmp_path)
    ending = run_here(run_dir, 1, lambda event: fill_disk(True) if logged(event, 10) else None)
    assert (ending.outcome, ending.cause, ending.retryable) == ("failed", "disk_full", True)
    assert "Free disk space" in ending.advice
    assert saved_steps(run_dir) == [6, 9]
    fill_disk(False)
    assert run_here(run_dir, 2).outcome == "succeeded"
    assert_same_run(run_dir, whole)


def test_a_pause_that_cannot_be_saved_says_so(
    tmp_path: Path, fill_disk: Callable[[bool], None]
) -> None:
    run_dir = new_run(tmp_path)

    def listen(event: Event) -> None:
        if logged(event, 5):
            fill_disk(True)
            ask(run_dir, "pause")

    ending = run_here(run_dir, 1, listen)
    assert ending.outcome == "paused"
    (applied,) = of_kind(read_events(run_dir), "control")
    assert applied.result == f"not saved at step {applied.step}: the disk is full"
    assert saved_steps(run_dir) == [3, 4]


def test_room_is_looked_for_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Weights and two moments, and something to spare."""
    asked: list[Path] = []

    def little(path: Path) -> Usage:
        asked.append(path)
        return Usage(10**12, 10**12, 50 << 20)

    run_dir = new_run(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", little)
    ending = run_here(run_dir)
    assert ending.cause == "disk_full"
    (notice,) = of_kind(read_events(run_dir), "notice")
    assert "needs 0.08 GB and the disk has 0.05 GB" in notice.message
    assert set(asked) == {run_dir.root}
    assert list(run_dir.checkpoints.glob("*")) == []


def test_an_error_that_is_no_full_disk_is_not_taken_for_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Path) -> Usage:
        raise OSError(errno.EIO, "Input/output error")

    run_dir = new_run(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", fail)
    ending = run_here(run_dir)
    assert (ending.outcome, ending.cause, ending.retryable) == ("failed", "crash", True)
    assert "Input/output error" in ending.message
