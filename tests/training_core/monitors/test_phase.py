"""Progress: the first and the last always, at most four a second between them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from training_core.failures import Interrupted
from training_core.monitors import phase as phase_module
from training_core.monitors.jsonl import EventLog
from training_core.monitors.phase import phase


class Clock:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(phase_module, "time", clock)
    return clock


def events(path: Path) -> list[dict]:  # type: ignore[type-arg]
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def counts(path: Path) -> list[tuple[int, int]]:
    return [(event["done"], event["total"]) for event in events(path)]


def test_a_quick_phase_has_its_first_and_its_last(clock: Clock, tmp_path: Path) -> None:
    log = EventLog(tmp_path / "e")
    with phase(log, "rollout", step=3, stage="rl", total=8, unit="rollouts") as report:
        for done in range(1, 8):
            report.update(done)
    assert counts(tmp_path / "e") == [(0, 8), (8, 8)]
    first = events(tmp_path / "e")[0]
    assert (first["phase"], first["step"], first["stage"]) == ("rollout", 3, "rl")


def test_a_long_phase_tells_four_times_a_second_at_most(clock: Clock, tmp_path: Path) -> None:
    log = EventLog(tmp_path / "e")
    with phase(log, "rollout", step=1, stage="rl", total=1000, unit="rollouts") as report:
        for done in range(1, 401):
            clock.now += 0.01
            report.update(done)
    told = events(tmp_path / "e")
    assert told[0]["done"] == 0
    assert told[-1]["done"] == 1000
    assert 4 * 4 - 2 <= len(told) - 2 <= 4 * 4
    assert [event["done"] for event in told] == sorted(event["done"] for event in told)


def test_tokens_per_second(clock: Clock, tmp_path: Path) -> None:
    log = EventLog(tmp_path / "e")
    with phase(log, "rollout", step=1, stage="rl", total=2, unit="rollouts") as report:
        clock.now += 0.5
        report.update(1, tokens=100)
    assert [event["tokens_per_s"] for event in events(tmp_path / "e")] == [None, 200.0, 200.0]


def test_a_total_that_becomes_known_on_the_way(clock: Clock, tmp_path: Path) -> None:
    log = EventLog(tmp_path / "e")
    with phase(log, "update", step=1, stage="rl", total=0, unit="micro-batches") as report:
        clock.now += 1
        report.update(1, total=3)
        report.update(2, total=3)
    assert counts(tmp_path / "e") == [(0, 0), (1, 3), (3, 3)]


def test_the_end_of_the_work_is_told_before_what_follows_it(clock: Clock, tmp_path: Path) -> None:
    """A checkpoint counts 1 of 1 when its files are on disk, just before the rename; once."""
    log = EventLog(tmp_path / "e")
    with phase(log, "checkpoint", step=4, stage="rl", total=1, unit="checkpoints") as report:
        report.update(0)
        assert counts(tmp_path / "e") == [(0, 1)]
        report.update(1)
        assert counts(tmp_path / "e") == [(0, 1), (1, 1)]
    assert counts(tmp_path / "e") == [(0, 1), (1, 1)]


def test_an_abandoned_phase_has_no_last(clock: Clock, tmp_path: Path) -> None:
    log = EventLog(tmp_path / "e")

    def be_abandoned() -> None:
        with phase(log, "evaluate", step=1, stage="rl", total=9, unit="rollouts") as report:
            report.update(2)
            raise Interrupted("stop")

    with pytest.raises(Interrupted):
        be_abandoned()
    assert counts(tmp_path / "e") == [(0, 9)]
