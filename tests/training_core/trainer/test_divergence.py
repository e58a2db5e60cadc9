"""Numbers that stop being finite: left out, told, given up, never saved."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.training_core.trainer.runs import (
    assert_same_run,
    final_files,
    new_run,
    of_kind,
    read_events,
    run_here,
    small_spec,
)
from training_core import train as train_module
from training_core.algorithms import update as update_module
from training_core.boundary import MOST_SKIPPED_IN_A_ROW
from training_core.checkpoints import read_checkpoint, saved_steps
from training_core.contract.algorithms import PolicyGradientSpec
from training_core.contract.rundir import RunDir
from training_core.contract.spec import CheckpointSpec
from training_core.contract.stages import RlStage
from training_core.gather import Gathered
from training_core.losses.policy_loss import PolicyLoss, TokenInputs
from training_core.session import Session, Stopwatch

Steps = Callable[[int], bool]


def break_loss(monkeypatch: pytest.MonkeyPatch, broken: Steps, value: float = math.nan) -> None:
    """Make the rl loss of some steps not finite, in both inner epochs."""
    loss, gather = update_module.policy_loss, train_module.gather_groups
    current = [0]

    def spoil(spec: PolicyGradientSpec, coefficient: float, tokens: TokenInputs) -> PolicyLoss:
        found = loss(spec, coefficient, tokens)
        return replace(found, loss_N=found.loss_N * value) if broken(current[0]) else found

    def note(session: Session, spec: RlStage, step: int, watch: Stopwatch) -> Gathered:
        current[0] = step
        return gather(session, spec, step, watch)

    monkeypatch.setattr(update_module, "policy_loss", spoil)
    monkeypatch.setattr(train_module, "gather_groups", note)


def break_weights(monkeypatch: pytest.MonkeyPatch, at_step: int) -> None:
    """Put NaN into the weights before that step samples."""
    gather = train_module.gather_groups

    def spoil(session: Session, spec: RlStage, step: int, watch: Stopwatch) -> Gathered:
        if step == at_step:
            with torch.no_grad():
                session.policy.parameters()[0].fill_(math.nan)
        return gather(session, spec, step, watch)

    monkeypatch.setattr(train_module, "gather_groups", spoil)


def grad_norms(run_dir: RunDir) -> dict[int, float]:
    return {
        e.step: e.values["grad_norm"]
        for e in of_kind(read_events(run_dir), "metrics")
        if "grad_norm" in e.values
    }


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_loss_that_is_not_finite_is_left_out_with_an_alarm(
    value: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = small_spec(checkpoint=CheckpointSpec(interval_steps=1, keep_last=100))
    run_dir = new_run(tmp_path, spec)
    break_loss(monkeypatch, lambda step: step == 6, value)
    ending = run_here(run_dir)
    assert (ending.outcome, ending.step) == ("succeeded", 12)
    (notice,) = of_kind(read_events(run_dir), "notice")
    assert (notice.code, notice.level, notice.step) == ("update_skipped", "alarm", 6)
    assert "learning rate" in notice.message
    norms = grad_norms(run_dir)
    assert [step for step, norm in norms.items() if not math.isfinite(norm)] == [6]
    weights = {step: final_files(run_dir, step)["model.safetensors"] for step in (5, 6, 7)}
    assert weights[5] == weights[6] != weights[7]
    assert read_checkpoint(run_dir.checkpoint(7)).state.skipped_in_a_row == 0


def test_one_alarm_for_a_row_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two epochs are left out in each step, so two steps are still no reason to give up."""
    run_dir = new_run(tmp_path)
    break_loss(monkeypatch, lambda step: step in (6, 7, 10))
    assert run_here(run_dir).outcome == "succeeded"
    assert [notice.step for notice in of_kind(read_events(run_dir), "notice")] == [6, 10]


def test_too_many_in_a_row_are_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_dir = new_run(tmp_path)
    break_loss(monkeypatch, lambda step: step >= 6)
    ending = run_here(run_dir)
    assert (ending.outcome, ending.cause, ending.retryable) == ("failed", "diverged", False)
    assert "learning rate" in ending.advice
    # Two updates in each step: the fifth is in step 8.
    assert ending.step == 5 + -(-MOST_SKIPPED_IN_A_ROW // 2)


def test_weights_that_are_not_finite_are_named_and_never_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor do they take the place of the best, whatever an evaluation made of them."""
    spec = small_spec(checkpoint=CheckpointSpec(interval_steps=3, keep_best=True))
    run_dir = new_run(tmp_path, spec)
    break_weights(monkeypatch, at_step=7)
    ending = run_here(run_dir)
    assert (ending.outcome, ending.cause, ending.retryable) == ("failed", "diverged", False)
    assert max(saved_steps(run_dir)) < 7
    for step in saved_steps(run_dir):
        best = read_checkpoint(run_dir.checkpoint(step)).state.best
        assert best is None or best.step < 7
    assert not [e for e in of_kind(read_events(run_dir), "checkpoint") if e.step >= 7]


def test_weights_that_are_not_finite_do_not_spoil_a_resume(
    whole: RunDir, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_dir = new_run(tmp_path)
    with monkeypatch.context() as patch:
        break_weights(patch, at_step=8)
        assert run_here(run_dir).cause == "diverged"
    assert run_here(run_dir, 2).outcome == "succeeded"
    assert_same_run(run_dir, whole)
