"""Runs of other algorithms: dynamic sampling, references, and a kill in the middle of each."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path

import pytest
from safetensors.torch import load_file

from tests.training_core.trainer.runs import (
    REWARD,
    RL,
    SFT,
    Trainer,
    assert_same_run,
    hold_at,
    new_run,
    of_kind,
    read_events,
    run_here,
    small_spec,
)
from training_core.checkpoints import read_checkpoint, read_manifest
from training_core.contract.algorithms import (
    AlgorithmSpec,
    DapoSpec,
    DivergenceSpec,
    GrpoSpec,
    GspoSpec,
    ReinforcePlusPlusBaselineSpec,
    RlooSpec,
)
from training_core.contract.events import PhaseProgress
from training_core.contract.rewards import LengthReward, RewardSpec
from training_core.contract.rollouts import RolloutGroupRecord
from training_core.contract.rundir import REFERENCE, RunDir
from training_core.contract.spec import CheckpointSpec, RunSpec
from training_core.contract.stages import SamplingSpec

KILLED_IN = 9
WANTED = 4
"""Prompts in each step."""
ALGORITHMS: dict[str, AlgorithmSpec] = {
    "dapo": DapoSpec(overlong_frac=0.0, minibatches=2, mask_truncated=True, most_sampling_rounds=3),
    "rloo": RlooSpec(minibatches=2, inner_epochs=2),
    "reinforce_plus_plus_baseline": ReinforcePlusPlusBaselineSpec(entropy_coefficient=0.01),
}
SPARSE = RewardSpec(root=LengthReward(target_tokens=1, limit_tokens=2))
"""0 or -1: many groups are all equal under it, so that dynamic sampling has work."""


def spec_of(algorithm: AlgorithmSpec) -> RunSpec:
    reward = SPARSE if algorithm.dynamic_sampling else REWARD
    stage = RL.model_copy(update={"algorithm": algorithm, "prompts_per_step": WANTED})
    return small_spec(stages=(SFT, stage), reward=reward)


def values_of(run_dir: RunDir, name: str) -> list[float]:
    events = of_kind(read_events(run_dir), "metrics")
    return [event.values[name] for event in events if name in event.values]


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_killed_run_resumes_to_the_bit(name: str, tmp_path: Path) -> None:
    """Optimiser, mix, reference, coefficient and carried groups come from the checkpoint."""
    whole = new_run(tmp_path / "whole", spec_of(ALGORITHMS[name]))
    killed = new_run(tmp_path / "killed", spec_of(ALGORITHMS[name]))
    hold_at(killed, 1, KILLED_IN)
    trainer = Trainer(killed)
    assert run_here(whole).outcome == "succeeded"
    trainer.wait_for(
        lambda event: (
            isinstance(event, PhaseProgress)
            and (event.step, event.phase, event.done > 0) == (KILLED_IN, "reward", True)
        )
    )
    os.kill(trainer.process.pid, signal.SIGKILL)
    assert trainer.wait() == -signal.SIGKILL
    assert run_here(killed, 2).outcome == "succeeded"
    (start,) = of_kind(read_events(killed, 2), "attempt_started")
    assert start.start_step == 6
    assert_same_run(killed, whole)
    assert any(norm > 0 for norm in values_of(whole, "grad_norm")[SFT.steps :])
    if name == "dapo":
        assert values_of(whole, "dynamic_sampling/carried_groups")[6 - SFT.steps - 1] > 0


def run_of(tmp_path: Path, algorithm: AlgorithmSpec, **changes: object) -> RunDir:
    spec = spec_of(algorithm).model_copy(update=changes)
    run_dir = new_run(tmp_path, spec)
    ending = run_here(run_dir)
    assert ending.outcome == "succeeded", ending
    return run_dir


def records_of(run_dir: RunDir, step: int) -> list[RolloutGroupRecord]:
    lines = run_dir.rollout_file(1, "train", step).read_bytes().splitlines()
    return [RolloutGroupRecord.model_validate_json(line) for line in lines]


def test_no_group_of_dynamic_sampling_is_lost(tmp_path: Path) -> None:
    """Sampled = used + dead + carried; each group stands in one record, at the step that decided
    its fate."""
    every = CheckpointSpec(interval_steps=1, keep_last=100)
    algorithm = DapoSpec(overlong_frac=0.0, most_sampling_rounds=3)
    run_dir = run_of(tmp_path, algorithm, checkpoint=every)
    ids: list[str] = []
    waiting: list[str] = []
    deads = values_of(run_dir, "dynamic_sampling/dead_groups")
    rounds = values_of(run_dir, "dynamic_sampling/rounds")
    for place, step in enumerate(range(5, 13)):
        groups = records_of(run_dir, step)
        dead = [g for g in groups if g.zero_spread]
        used = [g for g in groups if not g.zero_spread]
        assert len(dead) == deads[place]
        assert len(used) == WANTED or rounds[place] == 3
        assert [g.group_id for g in used][: len(waiting)] == waiting
        state = read_checkpoint(run_dir.checkpoint(step)).state
        waiting = [group.group_id for group in state.carried]
        ids += [group.group_id for group in groups]
    assert len(ids) == len(set(ids))
    assert waiting == []
    assert sum(deads) > 0
    prompts = values_of(run_dir, "num_prompts")
    carried_at_the_end = prompts[-1] - SFT.steps * SFT.batch_size - len(ids)
    assert 0 <= carried_at_the_end < WANTED
    assert max(values_of(run_dir, "dynamic_sampling/carried_groups")) > 0


def test_a_carried_group_is_compared_with_the_policy_that_sampled_it(tmp_path: Path) -> None:
    """Its ratio leaves 1 though the update has a single window."""
    algorithm = DapoSpec(overlong_frac=0.0, most_sampling_rounds=3)
    run_dir = run_of(tmp_path, algorithm)
    carried = values_of(run_dir, "dynamic_sampling/carried_groups")
    ratios = {
        event.step: event.values["ratio/max"]
        for event in of_kind(read_events(run_dir), "metrics")
        if "ratio/max" in event.values
    }
    after = [step for step, count in zip(range(6, 13), carried, strict=False) if count]
    assert any(abs(ratios[step] - 1.0) > 1e-4 for step in after if step in ratios)
    assert set(values_of(run_dir, "ratio/first_deviation_max")) == {0.0}


def test_the_reference_is_the_policy_that_the_stage_began_with(tmp_path: Path) -> None:
    """At its first step the divergence is exactly 0; its weights are those after the warm-up."""
    every = CheckpointSpec(interval_steps=1, keep_last=100)
    algorithm = GrpoSpec(divergence=DivergenceSpec(coefficient=0.1))
    run_dir = run_of(tmp_path, algorithm, checkpoint=every)
    kl = values_of(run_dir, "kl")
    assert kl[0] == 0.0
    assert all(value > 0 for value in kl[1:])
    assert set(values_of(run_dir, "kl_coefficient")) == {0.1}
    began = load_file(run_dir.checkpoint(SFT.steps) / "model.safetensors")
    kept = load_file(run_dir.checkpoint(7) / REFERENCE)
    assert all(bool((kept[name] == began[name]).all()) for name in kept)
    assert read_manifest(run_dir.checkpoint(7)).reference_step == SFT.steps
    inside = [run_dir.checkpoint(step) / REFERENCE for step in range(5, 12)]
    assert len({path.stat().st_ino for path in inside}) == 1
    for step in (3, SFT.steps, 12):
        assert not (run_dir.checkpoint(step) / REFERENCE).exists()


def test_a_reference_that_is_the_base_model_is_not_written(tmp_path: Path) -> None:
    stage = RL.model_copy(
        update={"algorithm": GrpoSpec(divergence=DivergenceSpec(coefficient=0.1)), "steps": 3}
    )
    spec = small_spec(stages=(stage,), checkpoint=CheckpointSpec(interval_steps=1, keep_last=9))
    whole, resumed = new_run(tmp_path / "a", spec), new_run(tmp_path / "b", spec)
    assert run_here(whole).outcome == "succeeded"
    assert not list(whole.checkpoints.glob(f"*/{REFERENCE}"))
    shutil.copytree(whole.checkpoint(2), resumed.checkpoint(2))
    assert run_here(resumed).outcome == "succeeded"
    name = "model.safetensors"
    assert (resumed.checkpoint(3) / name).read_bytes() == (whole.checkpoint(3) / name).read_bytes()


def test_a_stage_that_is_given_a_reference_midway_takes_the_policy_of_then(tmp_path: Path) -> None:
    """A restart from a checkpoint may add a divergence."""
    every = CheckpointSpec(interval_steps=1, keep_last=100)
    plain = run_of(tmp_path / "plain", GrpoSpec(), checkpoint=every)
    pulled = new_run(
        tmp_path / "pulled", spec_of(GrpoSpec(divergence=DivergenceSpec(coefficient=0.1)))
    )
    shutil.copytree(plain.checkpoint(6), pulled.checkpoint(6))
    assert run_here(pulled).outcome == "succeeded"
    assert values_of(pulled, "kl")[0] == 0.0
    assert read_manifest(pulled.checkpoint(9)).reference_step == 6


def test_the_coefficient_adapts_and_is_resumed(whole: RunDir) -> None:
    coefficients = values_of(whole, "kl_coefficient")
    assert coefficients[0] == 0.02
    assert len(set(coefficients)) == len(coefficients)
    state = json.loads((whole.checkpoint(9) / "state.json").read_text())
    assert state["divergence_coefficient"] == coefficients[5]
    assert state["reference_step"] == SFT.steps
    assert json.loads((whole.checkpoint(12) / "state.json").read_text())["reference_step"] is None


def test_a_strong_pull_keeps_the_policy_near(tmp_path: Path) -> None:
    def last_kl(coefficient: float) -> float:
        algorithm = GspoSpec(divergence=DivergenceSpec(coefficient=coefficient, estimator="k2"))
        return values_of(run_of(tmp_path / str(coefficient), algorithm), "kl")[-1]

    assert last_kl(30.0) < 0.5 * last_kl(1e-9)


def test_an_entropy_bonus_keeps_the_entropy_up(tmp_path: Path) -> None:
    def last_entropy(coefficient: float) -> float:
        algorithm = GrpoSpec(entropy_coefficient=coefficient)
        return values_of(run_of(tmp_path / str(coefficient), algorithm), "entropy")[-1]

    assert last_entropy(0.5) > last_entropy(0.0)


def test_masked_rollouts_are_told_from_unscored_ones(tmp_path: Path) -> None:
    short = RL.model_copy(
        update={
            "algorithm": GrpoSpec(mask_truncated=True),
            "sampling": SamplingSpec(max_new_tokens=2),
        }
    )
    run_dir = run_of(tmp_path, GrpoSpec(), stages=(SFT, short))
    shares = values_of(run_dir, "tokens/masked_frac")
    truncated = values_of(run_dir, "tokens/truncated_frac")
    assert max(shares) > 0
    assert shares == truncated
    assert set(values_of(run_dir, "tokens/unscored_frac")) == {0.0}
