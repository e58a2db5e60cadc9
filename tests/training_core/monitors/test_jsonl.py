"""The event log: whole lines, numbers without gaps, through a full disk as well."""

from __future__ import annotations

import json
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from training_core.contract.events import EVENT, Notice, PhaseProgress, StageStarted
from training_core.monitors.jsonl import EventLog


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "attempts" / "1" / "events.jsonl"


@pytest.fixture
def limit_file_size() -> Iterator[object]:
    """A limit on every file this process writes: a write beyond it fails like one on a full disk,
    for root as well."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def limit(size: int | None) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft if size is None else size, hard))

    yield limit
    limit(None)


def notice(log: EventLog, step: int, message: str = "m") -> None:
    log.emit(Notice, step=step, level="info", code="c", message=message)


def phase(log: EventLog, step: int) -> None:
    log.emit(PhaseProgress, step=step, stage="s", phase="rollout", done=0, total=1, unit="rollouts")


def read(path: Path) -> list[dict]:  # type: ignore[type-arg]
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def test_lines_are_events_numbered_from_one(path: Path) -> None:
    log = EventLog(path)
    log.emit(StageStarted, step=0, stage="warm-up", index=0)
    notice(log, 1)
    assert log.close()
    lines = path.read_bytes().splitlines()
    assert [EVENT.validate_json(line).seq for line in lines] == [1, 2]
    assert [EVENT.validate_json(line).kind for line in lines] == ["stage_started", "notice"]


def test_a_line_is_on_disk_at_once(path: Path) -> None:
    """A supervisor reads the file while it grows, and a kill loses nothing."""
    log = EventLog(path)
    notice(log, 1)
    assert len(read(path)) == 1
    log.close()


def test_an_old_log_is_carried_on_and_a_torn_line_dropped(path: Path) -> None:
    log = EventLog(path)
    notice(log, 1)
    notice(log, 2)
    log.close()
    with path.open("ab") as file:
        file.write(b'{"seq": 3, "kind": "noti')
    log = EventLog(path)
    notice(log, 3)
    log.close()
    assert [event["seq"] for event in read(path)] == [1, 2, 3]
    assert [event["step"] for event in read(path)] == [1, 2, 3]


def test_numbers_that_are_not_finite_survive(path: Path) -> None:
    log = EventLog(path)
    log.emit(
        PhaseProgress, step=0, stage="", phase="load", done=0, total=0, unit="models",
        tokens_per_s=float("inf"),
    )  # fmt: skip
    log.close()
    event = EVENT.validate_json(path.read_bytes())
    assert isinstance(event, PhaseProgress)
    assert event.tokens_per_s == float("inf")


def test_events_wait_for_room_on_the_disk(path: Path, limit_file_size) -> None:  # type: ignore[no-untyped-def]
    """No half line while it is full, no gap afterwards."""
    log = EventLog(path)
    notice(log, 1)
    limit_file_size(path.stat().st_size + 40)
    notice(log, 2)
    notice(log, 3)
    assert [event["step"] for event in read(path)] == [1]
    limit_file_size(None)
    notice(log, 4)
    assert log.close()
    assert [event["step"] for event in read(path)] == [1, 2, 3, 4]
    assert [event["seq"] for event in read(path)] == [1, 2, 3, 4]


def test_progress_does_not_wait_while_the_disk_is_full(path: Path, limit_file_size) -> None:  # type: ignore[no-untyped-def]
    log = EventLog(path)
    notice(log, 1)
    limit_file_size(path.stat().st_size)
    notice(log, 2)
    phase(log, 2)
    limit_file_size(None)
    notice(log, 3)
    assert log.close()
    assert [(event["seq"], event["kind"]) for event in read(path)] == [
        (1, "notice"), (2, "notice"), (3, "notice"),
    ]  # fmt: skip


def test_what_is_lost_in_the_end_is_told(path: Path, limit_file_size) -> None:  # type: ignore[no-untyped-def]
    log = EventLog(path)
    limit_file_size(10)
    notice(log, 1)
    assert log.close() is False
    assert path.read_bytes() == b""
