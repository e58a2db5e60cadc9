"""What a run that nobody disturbs says about itself."""

from __future__ import annotations

import json
from collections import defaultdict

import pytest

from tests.training_core.trainer.runs import RL, SFT, evaluation_rows, of_kind, read_events
from training_core.checkpoints import read_checkpoint
from training_core.contract.events import PhaseProgress
from training_core.contract.metrics import METRICS, find_metric
from training_core.contract.rollouts import RolloutGroupRecord
from training_core.contract.rundir import RunDir


@pytest.fixture(scope="module")
def records(whole: RunDir) -> list[RolloutGroupRecord]:
    """Every group, read through the slices that the events name."""
    found = []
    for event in of_kind(read_events(whole), "rollouts"):
        content = (whole.root / event.file).read_bytes()
        part = content[event.offset_bytes : event.offset_bytes + event.length_bytes]
        lines = part.splitlines()
        assert len(lines) == event.groups
        found += [RolloutGroupRecord.model_validate_json(line) for line in lines]
    return found


def test_the_first_and_the_last_of_each_phase_are_there(whole: RunDir) -> None:
    phases: dict[tuple[int, str], list[PhaseProgress]] = defaultdict(list)
    for event in of_kind(read_events(whole), "phase"):
        phases[event.step, event.phase].append(event)
    for told in phases.values():
        assert told[0].done == 0
        assert told[-1].done == told[-1].total
        assert len(told) >= 2
    assert {step for step, name in phases if name == "sft"} == set(range(1, 5))
    for name in ("rollout", "reward", "update"):
        assert {step for step, phase in phases if phase == name} == set(range(5, 13))
    assert {step for step, name in phases if name == "evaluate"} == {0, 4, 7, 10, 12}
    assert {step for step, name in phases if name == "checkpoint"} == {3, 4, 6, 9, 12}
    assert {step for step, name in phases if name == "load"} == {0}


def test_stages_begin_where_they_should(whole: RunDir) -> None:
    started = [(e.stage, e.index, e.step) for e in of_kind(read_events(whole), "stage_started")]
    assert started == [("warm-up", 0, 0), ("rl", 1, 4)]


def test_every_metric_stands_in_the_catalogue(whole: RunDir) -> None:
    names = {name for e in of_kind(read_events(whole), "metrics") for name in e.values}
    assert sorted(name for name in names if find_metric(name) is None) == []
    logged = {metric.name for name in names if (metric := find_metric(name))}
    assert {metric.name for metric in METRICS} - logged <= {"system/gpu_memory"}


def test_each_step_logs_its_metrics_once(whole: RunDir) -> None:
    steps = [e.step for e in of_kind(read_events(whole), "metrics") if "time/step" in e.values]
    assert steps == list(range(1, 13))


def test_counters_grow_by_what_was_used(whole: RunDir, records: list[RolloutGroupRecord]) -> None:
    rows = {
        e.step: e.values for e in of_kind(read_events(whole), "metrics") if "time/step" in e.values
    }
    assert [rows[step]["num_prompts"] for step in (1, 4, 5, 12)] == [
        SFT.batch_size, 4 * SFT.batch_size, 4 * SFT.batch_size + RL.prompts_per_step,
        4 * SFT.batch_size + 8 * RL.prompts_per_step,
    ]  # fmt: skip
    sampled = sum(r.tokens for g in records if g.kind == "train" for r in g.rollouts)
    assert rows[12]["num_tokens"] == sampled
    assert "num_tokens" not in rows[4]


def test_learning_rate_follows_the_stage(whole: RunDir) -> None:
    rates = [
        e.values["learning_rate"]
        for e in of_kind(read_events(whole), "metrics")
        if "learning_rate" in e.values
    ]
    assert rates[:4] == [5e-3] * 4
    expected = [0.5, 1.0, 1.0, 5 / 6, 4 / 6, 3 / 6, 2 / 6, 1 / 6]
    assert rates[4:] == pytest.approx([1e-3 * share for share in expected])


def test_training_groups_are_whole_and_scored(records: list[RolloutGroupRecord]) -> None:
    groups = [group for group in records if group.kind == "train"]
    assert len(groups) == RL.steps * RL.prompts_per_step
    for group in groups:
        assert len(group.rollouts) == RL.group_size
        for index, rollout in enumerate(group.rollouts):
            assert rollout.index == index
            assert len(rollout.token_ids) == len(rollout.logprobs) == rollout.tokens > 0
            assert all(value <= 0 for value in rollout.logprobs)
            assert [score.name for score in rollout.scores] == ["correctness", "length"]
            total = sum(s.weight * s.value for s in rollout.scores if s.value is not None)
            assert rollout.reward == pytest.approx(total)
            assert rollout.advantage is not None
    assert any(abs(r.advantage or 0.0) > 0.1 for g in groups for r in g.rollouts)


def test_advantages_of_a_group_add_up_to_nothing(records: list[RolloutGroupRecord]) -> None:
    for group in records:
        if group.kind == "train":
            advantages = [rollout.advantage or 0.0 for rollout in group.rollouts]
            assert sum(advantages) == pytest.approx(0.0, abs=1e-9)
            assert group.zero_spread == (not any(advantages))


def test_each_step_goes_on_where_the_mix_stands(
    whole: RunDir, records: list[RolloutGroupRecord]
) -> None:
    prompts: dict[int, list[str]] = defaultdict(list)
    for group in records:
        if group.kind == "train":
            prompts[group.step].append(group.prompt_id)
    assert len({tuple(ids) for ids in prompts.values()}) == RL.steps
    drawn = SFT.steps * SFT.batch_size + RL.steps * RL.prompts_per_step
    assert read_checkpoint(whole.checkpoint(12)).state.mix.drawn == drawn


def test_evaluation_groups_have_no_advantage(records: list[RolloutGroupRecord]) -> None:
    groups = [group for group in records if group.kind == "evaluate"]
    assert [group.step for group in groups] == sorted([0, 4, 7, 10, 12] * 6)
    assert {r.advantage for group in groups for r in group.rollouts} == {None}


def test_ids_of_groups_are_unique(records: list[RolloutGroupRecord]) -> None:
    ids = [group.group_id for group in records]
    assert len(set(ids)) == len(ids)


def test_no_held_out_prompt_is_trained_on(records: list[RolloutGroupRecord]) -> None:
    held_out = {group.prompt_id for group in records if group.kind == "evaluate"}
    assert len(held_out) == 6
    assert not held_out & {group.prompt_id for group in records if group.kind == "train"}


def test_evaluations_say_why_and_compare_with_base_and_warm_up(whole: RunDir) -> None:
    rows = evaluation_rows(whole)
    assert [(row["step"], row["label"], row["title"]) for row in rows] == [
        (0, "start", "base model"), (4, "stage_end", "after warm-up"),
        (7, "interval", "step 7"), (10, "interval", "step 10"), (12, "final", "final"),
    ]  # fmt: skip
    overall = rows[-1]["results"][0]
    labels = [compared["against_label"] for compared in overall["compared"]]
    assert labels == ["base model", "after warm-up"]
    first = rows[0]["results"][0]["pass_at_1"]["value"]
    last = overall["pass_at_1"]["value"]
    assert overall["compared"][0]["difference"]["value"] == pytest.approx(last - first)
    assert len({row["recipe"] for row in rows}) == 1


def test_evaluations_are_those_of_their_rollouts(
    whole: RunDir, records: list[RolloutGroupRecord]
) -> None:
    for row in evaluation_rows(whole):
        rollouts = [
            rollout
            for group in records
            if group.kind == "evaluate" and group.step == row["step"]
            for rollout in group.rollouts
        ]
        overall = row["results"][0]
        passed = [rollout.passed for rollout in rollouts]
        assert overall["pass_at_1"]["value"] == pytest.approx(sum(map(bool, passed)) / 6)
        rewards = [rollout.reward or 0.0 for rollout in rollouts]
        assert overall["reward"]["value"] == pytest.approx(sum(rewards) / 6)
    assert evaluation_rows(whole)[-1]["results"][0]["pass_at_1"]["value"] > 0


def test_checkpoints_are_told_with_their_size(whole: RunDir) -> None:
    saved = of_kind(read_events(whole), "checkpoint")
    assert [event.step for event in saved] == [3, 4, 6, 9, 12]
    assert [event.pass_at_1 is not None for event in saved] == [False, True, False, False, True]
    last = whole.root / saved[-1].path
    manifest = json.loads((last / "manifest.json").read_text())
    assert saved[-1].size_bytes == sum(entry["size"] for entry in manifest["files"].values())
    assert saved[-1].removed == ("checkpoints/step-000006",)
