"""A step under glass is the step of a run, and tells the truth about it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.training_core.glass.conftest import STAGE
from tests.training_core.trainer.runs import of_kind, read_events
from training_core.checkpoints import read_checkpoint
from training_core.contract.algorithms import GroupRelativeSpec
from training_core.contract.glass import DomainPrompt, GlassDir, GlassResult, GlassSpec
from training_core.contract.rewards import LengthReward, RewardSpec
from training_core.contract.rollouts import RolloutGroupRecord
from training_core.contract.rundir import RunDir
from training_core.contract.stages import OptimiserSpec
from training_core.curriculum.mix import next_prompts
from training_core.domains.sources import open_domain
from training_core.glass import Bench, take_glass_step
from training_core.models.loading import load_directory
from training_core.monitors.glass_progress import GlassReporter
from training_core.rollouts.collect import PromptRequest
from training_core.rollouts.seeds import stream_seed
from workers.glass_main import open_bench

FIRST = 5
"""The first step of the rl stage."""
ALL_EQUAL = RewardSpec(root=LengthReward(target_tokens=500, limit_tokens=501))


class Taken:
    """One step under glass from the checkpoint before a step of the run."""

    def __init__(
        self,
        run_dir: RunDir,
        folder: Path,
        step: int = FIRST,
        *,
        keeps_moments: bool = False,
        reward: RewardSpec | None = None,
        algorithm: GroupRelativeSpec | None = None,
        **optimiser: Any,
    ) -> None:
        run = run_dir.read_spec()
        before = run_dir.checkpoint(step - 1)
        mix = read_checkpoint(before).state.mix
        (pick,) = next_prompts(mix, run.domains, 1)[1]
        settings = STAGE.optimiser.model_copy(update=optimiser)
        self.spec = GlassSpec(
            model=run.model,
            checkpoint=str(before.relative_to(run_dir.root)),
            keeps_moments=keeps_moments,
            prompt=DomainPrompt(domain=run.domains[0], index=pick.prompt_index, seed=run.seed),
            reward=reward or run.reward,
            stage=STAGE.model_copy(
                update={
                    "steps": 1,
                    "optimiser": settings,
                    "algorithm": algorithm or STAGE.algorithm,
                }
            ),
            resources=run.resources,
            seed=run.seed,
        )
        folder.mkdir(exist_ok=True)
        self.reporter = GlassReporter(GlassDir(folder))
        self.bench: Bench = open_bench(self.spec, run_dir, self.reporter)
        item = open_domain(run.domains[0], run_dir, run.seed).prompt(pick.prompt_index)
        seeds = tuple(
            stream_seed(run.seed, "rollout", step, 0, index) for index in range(STAGE.group_size)
        )
        self.result: GlassResult = take_glass_step(
            self.bench, self.spec, PromptRequest("glass", item, seeds)
        )

    def weights(self) -> dict[str, torch.Tensor]:
        return {name: w.detach() for name, w in self.bench.policy.model.named_parameters()}


def changes(result: GlassResult) -> list[float]:
    return [sum(one.after) - sum(one.before) for one in result.completions]


@pytest.mark.parametrize(("step", "keeps_moments"), [(FIRST, False), (FIRST + 1, True)])
def test_it_is_the_runs_own_step_bit_for_bit(
    finished: RunDir, tmp_path: Path, step: int, keeps_moments: bool
) -> None:
    taken = Taken(finished, tmp_path / "glass", step, keeps_moments=keeps_moments)
    (metrics,) = [
        event.values for event in of_kind(read_events(finished), "metrics") if event.step == step
    ]
    assert taken.result.loss == metrics["loss"]
    assert taken.result.grad_norm == metrics["grad_norm"] > 0
    record = RolloutGroupRecord.model_validate_json(
        finished.rollout_file(1, "train", step).read_bytes()
    )
    assert [one.token_ids for one in taken.result.completions] == [
        rollout.token_ids for rollout in record.rollouts
    ]
    assert [(one.reward, one.advantage) for one in taken.result.completions] == [
        (rollout.reward, rollout.advantage) for rollout in record.rollouts
    ]
    assert taken.result.optimiser_steps == step - FIRST
    after = load_directory(finished.checkpoint(step)).model
    expected = dict(after.named_parameters())
    found = taken.weights()
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], expected[name]) for name in found)


def test_fresh_moments_are_another_step(finished: RunDir, tmp_path: Path) -> None:
    """The comparison above can fail."""
    taken = Taken(finished, tmp_path / "glass", FIRST + 1, keeps_moments=False)
    after = load_directory(finished.checkpoint(FIRST + 1)).model
    expected = dict(after.named_parameters())
    assert any(not torch.equal(w, expected[name]) for name, w in taken.weights().items())


def test_good_completions_become_likelier(finished: RunDir, tmp_path: Path) -> None:
    result = Taken(finished, tmp_path / "glass").result
    advantages = [one.advantage or 0.0 for one in result.completions]
    assert any(a > 0 for a in advantages)
    assert any(a < 0 for a in advantages)
    pairs = zip(advantages, changes(result), strict=True)
    assert sum(advantage * change for advantage, change in pairs) > 0


def test_the_loss_is_that_of_ratio_one(finished: RunDir, tmp_path: Path) -> None:
    result = Taken(finished, tmp_path / "glass").result
    total = sum((one.advantage or 0.0) * len(one.token_ids) for one in result.completions)
    assert result.loss == pytest.approx(-total / result.divisor_tokens, rel=1e-5)
    assert result.divisor_tokens == sum(len(one.token_ids) for one in result.completions)


def test_a_learning_rate_of_0_moves_nothing(finished: RunDir, tmp_path: Path) -> None:
    result = Taken(finished, tmp_path / "glass", learning_rate=0.0).result
    assert (result.weights_moved, result.weight_change, result.kl) == (0, 0.0, 0.0)
    assert result.grad_norm > 0
    for one in result.completions:
        assert one.after == one.before
        assert set(one.next_clip) == {""}


def test_a_second_update_would_clip_where_the_ratio_has_left_its_bounds(
    finished: RunDir, tmp_path: Path
) -> None:
    result = Taken(finished, tmp_path / "glass", learning_rate=0.05).result
    seen = set()
    for one in result.completions:
        for before, after, clip in zip(one.before, one.after, one.next_clip, strict=True):
            ratio, advantage = math.exp(after - before), one.advantage or 0.0
            high, low = advantage > 0 and ratio > 1.2, advantage < 0 and ratio < 0.8
            assert clip == ("high" if high else "low" if low else "")
            seen.add(clip)
    assert len(seen) > 1


def test_the_distance_is_the_mean_of_the_tokens(finished: RunDir, tmp_path: Path) -> None:
    result = Taken(finished, tmp_path / "glass").result
    logs = [a - b for one in result.completions for b, a in zip(one.before, one.after, strict=True)]
    expected = sum(math.exp(d) - 1 - d for d in logs) / len(logs)
    assert result.kl == pytest.approx(expected, rel=1e-4)
    assert result.kl > 0


@pytest.mark.parametrize(
    ("step", "keeps_moments", "weight_decay", "moves"),
    [(FIRST, False, 0.0, False), (FIRST, False, 0.1, True), (FIRST + 1, True, 0.0, True)],
)
def test_a_dead_group_has_no_gradient_and_moves_by_decay_and_moments_alone(
    finished: RunDir,
    tmp_path: Path,
    step: int,
    keeps_moments: bool,
    weight_decay: float,
    moves: bool,
) -> None:
    taken = Taken(
        finished,
        tmp_path / "glass",
        step,
        keeps_moments=keeps_moments,
        reward=ALL_EQUAL,
        weight_decay=weight_decay,
    )
    result = taken.result
    assert result.is_dead
    assert (result.loss, result.grad_norm, result.reward_std) == (0.0, 0.0, 0.0)
    assert {one.advantage for one in result.completions} == {0.0}
    assert (result.weights_moved > 0) is moves
    assert (result.weight_change > 0) is moves


def test_the_code_that_ran_is_named(finished: RunDir, tmp_path: Path) -> None:
    result = Taken(finished, tmp_path / "glass").result
    root = Path(__file__).resolve().parents[3]
    assert len(result.sources) == 6
    for source in result.sources:
        line = (root / source.file).read_text().splitlines()[source.line - 1]
        assert line.lstrip().startswith(f"def {source.function.rpartition('.')[2]}(")
        assert source.doc
    assert "A_i = (r_i - mean_g) / (std_g + eps)" in result.sources[1].doc


def test_progress_grows_into_the_completions(finished: RunDir, tmp_path: Path) -> None:
    folder = tmp_path / "glass"
    taken = Taken(finished, folder)
    progress = GlassDir(folder).find_progress()
    assert progress is not None
    assert progress.phase == "after"
    assert progress.messages == taken.result.messages
    assert list(progress.texts) == ["".join(one.pieces) for one in taken.result.completions]
    assert set(taken.reporter.seconds) == {"load", "sample", "score", "before", "update", "after"}


def test_the_optimiser_of_the_spec_is_the_one_that_steps(finished: RunDir, tmp_path: Path) -> None:
    bench = Taken(finished, tmp_path / "glass", learning_rate=3e-4).bench
    (group,) = bench.optimiser.param_groups
    assert (group["lr"], group["weight_decay"]) == (3e-4, 0.01)
    assert group["betas"] == (OptimiserSpec().beta1, OptimiserSpec().beta2)
