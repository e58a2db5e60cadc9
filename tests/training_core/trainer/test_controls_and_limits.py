"""Control experiments that must teach nothing, limits that end a run, failures before it starts."""

from __future__ import annotations

import collections
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from safetensors.torch import load_file

from tests.training_core.algorithms.rollout_groups import make_group, make_rollout, rewards_of
from tests.training_core.trainer.runs import (
    RL,
    SFT,
    ask,
    assert_same_run,
    evaluation_rows,
    new_run,
    of_kind,
    read_events,
    run_here,
    small_spec,
)
from training_core import launch as launch_module
from training_core.contract.events import Event
from training_core.contract.rollouts import RewardScore
from training_core.contract.rundir import RunDir
from training_core.contract.spec import BudgetSpec, EvaluationSpec, ModelSpec
from training_core.contract.stages import OptimiserSpec, RlStage
from training_core.judge import earnings_of
from training_core.models import device as device_module
from training_core.models.device import apply_plan
from training_core.models.tiny import build_tiny_model
from training_core.monitors import steering as steering_module
from training_core.session import Session
from training_core.types import Rollout, RolloutGroup

STILL = OptimiserSpec(learning_rate=0.0)


def with_rl(**changes: Any) -> RlStage:
    return RL.model_copy(update=changes)


def test_a_learning_rate_of_nothing_leaves_the_weights(tmp_path: Path) -> None:
    """Both stages, with inner epochs, gradients and moments: every weight keeps its bits."""
    stages = (SFT.model_copy(update={"optimiser": STILL}), with_rl(optimiser=STILL))
    run_dir = new_run(tmp_path, small_spec(stages=stages))
    assert run_here(run_dir).outcome == "succeeded"
    found = load_file(run_dir.checkpoint(12) / "model.safetensors")
    for name, weight in build_tiny_model().state_dict().items():
        if name in found:
            assert torch.equal(found[name], weight), name
    assert len(found) > 30
    rows = [e.values for e in of_kind(read_events(run_dir), "metrics") if "reward" in e.values]
    assert all(row["clip_ratio/region_mean"] == 0.0 for row in rows if row["grad_norm"])
    assert any(row["grad_norm"] > 0 for row in rows)


def groups_of_rewards() -> list[RolloutGroup]:
    return [
        make_group("a", [make_rollout([5], reward) for reward in (1.0, None, 2.0, 3.0)]),
        make_group("b", [make_rollout([5], reward) for reward in (4.0, 5.0, 6.0, None)]),
    ]


def dealt(step: int, *, shuffle: bool = True, seed: int = 0) -> list[float | None]:
    session = cast(Session, SimpleNamespace(spec=small_spec(seed=seed)))
    stage = with_rl(shuffle_rewards=shuffle)
    found = earnings_of(session, stage, step, groups_of_rewards())
    return [None if earned is None else earned.reward for earned in found]


def test_shuffled_rewards_are_the_same_rewards_elsewhere() -> None:
    original = rewards_of(groups_of_rewards())
    assert dealt(1, shuffle=False) == original
    found = dealt(1)
    assert collections.Counter(found) == collections.Counter(original)
    assert [reward is None for reward in found] == [reward is None for reward in original]
    assert found != original
    assert found == dealt(1)
    assert len({tuple(dealt(step)) for step in range(8)}) > 5
    assert dealt(1) != dealt(1, seed=1)


def test_shuffled_rewards_leave_the_groups_they_came_from() -> None:
    """A shuffle inside groups would leave each group's own baseline, and some signal."""
    moved = [set(dealt(step)[:4]) - {None} for step in range(20)]
    assert any(values & {4.0, 5.0, 6.0} for values in moved)


def test_shuffled_rewards_take_their_parts_with_them() -> None:
    """An advantage that is made of single rewards must not find them where they were earned."""

    def scored(value: float) -> Rollout:
        score = RewardScore(name="r", weight=1.0, status="ok", value=value, explanation="")
        return replace(make_rollout([5], value), scores=(score,))

    groups = [make_group("a", [scored(float(value)) for value in range(12)])]
    session = cast(Session, SimpleNamespace(spec=small_spec()))
    found = earnings_of(session, with_rl(shuffle_rewards=True), 1, groups)
    values = [earned.scores[0].value for earned in found if earned]
    assert values == [earned.reward for earned in found if earned]
    assert sorted(values) != values


def test_records_of_a_shuffled_run_keep_the_rewards_that_were_earned(
    whole: RunDir, tmp_path: Path
) -> None:
    """In the first rl step, where both runs still have the same weights."""
    run_dir = new_run(tmp_path, small_spec(stages=(SFT, with_rl(shuffle_rewards=True, steps=1))))
    run_here(run_dir)
    first, other = (one.rollout_file(1, "train", 5).read_text() for one in (run_dir, whole))
    assert without_advantages(first) == without_advantages(other)
    assert first != other


def without_advantages(text: str) -> list[str]:
    return [part.split('"advantage"')[0] for part in text.split('"index"')]


def test_a_budget_of_tokens_ends_the_run_well(tmp_path: Path) -> None:
    run_dir = new_run(tmp_path, small_spec(budget=BudgetSpec(max_tokens=60)))
    ending = run_here(run_dir)
    assert (ending.outcome, ending.cause) == ("succeeded", "budget")
    assert "60 sampled tokens" in ending.message
    assert SFT.steps < ending.step < 12
    events = read_events(run_dir)
    tokens = [e.values["num_tokens"] for e in of_kind(events, "metrics") if "reward" in e.values]
    assert tokens[-1] >= 60 > tokens[-2]
    final = of_kind(events, "evaluation")[-1]
    assert (final.label, final.step) == ("final", ending.step)
    assert run_dir.checkpoint(ending.step).is_dir()


def test_a_budget_that_ends_in_a_pause_ends_at_the_same_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Paused in its last evaluation, the run evaluates and ends; it takes no further step."""
    monkeypatch.setattr(steering_module, "LOOK_INTERVAL_S", 0.0)
    spec = small_spec(
        budget=BudgetSpec(max_tokens=60),
        evaluation=EvaluationSpec(max_new_tokens=6, at_start=False, stage_end=False),
    )
    whole = new_run(tmp_path / "whole", spec)
    last = run_here(whole).step
    run_dir = new_run(tmp_path / "paused", spec)

    def listen(event: Event) -> None:
        if event.kind == "phase" and event.phase == "evaluate" and event.done == 0:
            ask(run_dir, "pause")

    assert (run_here(run_dir, 1, listen).outcome, last) == ("paused", last)
    ending = run_here(run_dir, 2)
    assert (ending.outcome, ending.cause, ending.step) == ("succeeded", "budget", last)
    assert evaluation_rows(run_dir) == evaluation_rows(whole)


def test_a_budget_of_minutes_counts_training_time(tmp_path: Path) -> None:
    run_dir = new_run(tmp_path, small_spec(budget=BudgetSpec(max_minutes=1e-9)))
    ending = run_here(run_dir)
    assert (ending.outcome, ending.cause, ending.step) == ("succeeded", "budget", 1)
    assert "minutes of training" in ending.message


def test_a_budget_that_is_never_reached_changes_nothing(whole: RunDir, tmp_path: Path) -> None:
    budget = BudgetSpec(max_minutes=1000, max_tokens=10**9)
    run_dir = new_run(tmp_path, small_spec(budget=budget))
    assert run_here(run_dir).cause == "done"
    assert_same_run(run_dir, whole)


def test_lanes_repeat_exactly_and_resume_exactly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model of this size computes in one lane; the border is moved so that it takes two.

    The thread beside them keeps to one processor: kernels this short would wait for each other.
    """
    monkeypatch.setattr(device_module, "SMALLEST_BFLOAT16_MODEL", 0)
    monkeypatch.setattr(steering_module, "LOOK_INTERVAL_S", 0.0)
    monkeypatch.setattr(
        launch_module, "apply_plan", lambda plan: apply_plan(replace(plan, threads=1))
    )
    resources = small_spec().resources.model_copy(update={"threads": 2, "compute_dtype": "float32"})
    spec = small_spec(resources=resources)
    in_one_go, stopped = new_run(tmp_path / "one", spec), new_run(tmp_path / "two", spec)
    run_here(in_one_go)
    (start,) = of_kind(read_events(in_one_go), "attempt_started")
    assert start.threads == 2

    def listen(event: Event) -> None:
        if event.kind == "phase" and (event.step, event.phase) == (8, "update"):
            ask(stopped, "shutdown", name="one and only")

    assert run_here(stopped, 1, listen).outcome == "shutdown"
    assert run_here(stopped, 2).outcome == "succeeded"
    assert_same_run(stopped, in_one_go)


def test_small_micro_batches_train_the_same_up_to_rounding(whole: RunDir, tmp_path: Path) -> None:
    resources = small_spec().resources.model_copy(update={"micro_batch_tokens": 64})
    run_dir = new_run(tmp_path, small_spec(resources=resources))
    run_here(run_dir)

    def losses(one: RunDir) -> list[float]:
        steps = of_kind(read_events(one), "metrics")
        return [e.values["sft/loss"] for e in steps if "sft/loss" in e.values]

    assert losses(run_dir) == pytest.approx(losses(whole), rel=1e-4)


def test_a_model_that_cannot_be_loaded_fails_before_training(tmp_path: Path) -> None:
    run_dir = new_run(tmp_path, small_spec(model=ModelSpec(ref=str(tmp_path / "gone"))))
    ending = run_here(run_dir)
    assert (ending.outcome, ending.cause, ending.retryable) == ("failed", "bad_model", False)
    assert str(tmp_path / "gone") in ending.message
    assert ending.advice
    assert [event.kind for event in read_events(run_dir)] == ["phase"]


def test_an_unforeseen_error_may_be_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("by nothing")

    run_dir = new_run(tmp_path)
    monkeypatch.setattr("training_core.gather.score_groups", fail)
    ending = run_here(run_dir)
    assert (ending.outcome, ending.cause, ending.retryable) == ("failed", "crash", True)
    assert ending.message == "ZeroDivisionError: by nothing"
    assert ending.step == 4
