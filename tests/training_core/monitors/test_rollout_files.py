"""Rollouts on disk: whole groups, found again by the slice that the event names."""

from __future__ import annotations

import json
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.training_core.algorithms.rollout_groups import make_group, make_rollout
from training_core.contract.events import RolloutKind
from training_core.contract.rollouts import RolloutGroupRecord
from training_core.contract.rundir import RunDir
from training_core.monitors.jsonl import EventLog
from training_core.monitors.rollout_files import has_zero_spread, make_record, write_groups
from training_core.types import Rollout, RolloutGroup


@pytest.fixture
def run_dir(tmp_path: Path) -> RunDir:
    return RunDir(tmp_path)


@pytest.fixture
def log(run_dir: RunDir) -> Iterator[EventLog]:
    log = EventLog(run_dir.events_file(1))
    yield log
    log.close()


def passed(rollout: Rollout) -> bool | None:
    return None if rollout.reward is None else rollout.reward > 0


def group(group_id: str, *rewards: float | None) -> RolloutGroup:
    return make_group(group_id, [make_rollout([5, 6], reward) for reward in rewards])


def write(
    run_dir: RunDir, log: EventLog, groups: list[RolloutGroup], kind: RolloutKind = "train"
) -> None:
    write_groups(run_dir, log, groups, attempt=1, step=3, stage="rl", kind=kind, passed=passed)


def events(run_dir: RunDir) -> list[dict]:  # type: ignore[type-arg]
    return [json.loads(line) for line in run_dir.events_file(1).read_bytes().splitlines()]


def read_slice(run_dir: RunDir, event: dict) -> list[RolloutGroupRecord]:  # type: ignore[type-arg]
    content = (run_dir.root / event["file"]).read_bytes()
    part = content[event["offset_bytes"] : event["offset_bytes"] + event["length_bytes"]]
    return [RolloutGroupRecord.model_validate_json(line) for line in part.splitlines()]


def test_each_event_names_the_slice_of_its_groups(run_dir: RunDir, log: EventLog) -> None:
    write(run_dir, log, [group("a", 1.0, 0.0), group("b", None)], kind="evaluate")
    write(run_dir, log, [group("c", 1.0)], kind="evaluate")
    first, second = events(run_dir)
    assert first["file"] == second["file"] == "rollouts/a1-evaluate-000003.jsonl"
    assert [record.group_id for record in read_slice(run_dir, first)] == ["a", "b"]
    assert [record.group_id for record in read_slice(run_dir, second)] == ["c"]
    assert (first["groups"], second["groups"]) == (2, 1)


def test_a_record_holds_the_whole_group() -> None:
    record = make_record(
        group("a", 1.0, None, 0.5), step=3, stage="rl", kind="train", passed=passed
    )
    assert record.reward_mean == 0.75
    assert record.reward_std == pytest.approx(0.353553, abs=1e-6)
    assert [rollout.index for rollout in record.rollouts] == [0, 1, 2]
    assert [rollout.reward for rollout in record.rollouts] == [1.0, None, 0.5]
    assert [rollout.passed for rollout in record.rollouts] == [True, None, True]
    assert record.rollouts[0].token_ids == (5, 6)
    assert record.rollouts[0].logprobs == (-1.0, -1.0)
    assert record.prompt_tokens == 3
    assert not record.zero_spread


def test_a_group_with_one_score_has_a_mean_and_no_spread() -> None:
    record = make_record(group("a", 1.0, None), step=3, stage="rl", kind="train", passed=passed)
    assert (record.reward_mean, record.reward_std, record.zero_spread) == (1.0, None, True)
    unscored = make_record(group("a", None), step=3, stage="rl", kind="train", passed=passed)
    assert (unscored.reward_mean, unscored.reward_std) == (None, None)


@pytest.mark.parametrize(
    ("rewards", "expected"),
    [
        ((0.1, 0.1, 0.1), True),
        ((0.1 + 0.2, 0.3), True),
        ((1.0, None), True),
        ((1000.0, 1000.1), False),
        ((0.0, 1e-9), False),
    ],
)
def test_zero_spread(rewards: tuple[float | None, ...], expected: bool) -> None:
    assert has_zero_spread(group("a", *rewards)) is expected


def test_a_full_disk_costs_the_records_and_not_the_run(run_dir: RunDir, log: EventLog) -> None:
    write(run_dir, log, [group("a", 1.0)])
    path = run_dir.rollout_file(1, "train", 3)
    before = path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 700, hard))
    try:
        write(run_dir, log, [group(name, 1.0, 0.0) for name in "bcd"])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == before
    notice = events(run_dir)[-1]
    assert (notice["kind"], notice["level"]) == ("notice", "alarm")
    assert notice["code"] == "rollouts_not_written"
    assert "3 groups" in notice["message"]
    write(run_dir, log, [group("e", 1.0)])
    assert read_slice(run_dir, events(run_dir)[-1])[0].group_id == "e"
