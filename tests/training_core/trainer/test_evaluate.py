"""Held-out evaluation: item by item, comparable only with its like, honest about what failed."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.training_core.trainer.runs import (
    ADDITION,
    SFT,
    new_run,
    of_kind,
    read_events,
    run_here,
    small_spec,
)
from training_core.contract.domains import DatasetDomain, DatasetRecord, Message
from training_core.contract.rundir import RunDir
from training_core.contract.spec import EvaluationSpec, RunSpec
from training_core.domains.item import PromptItem
from training_core.domains.sources import open_domain
from training_core.evaluate import EvaluationOutcome, Evaluator, evaluation_metrics, recipe_hash
from training_core.models.policy import Policy
from training_core.state import PastEvaluation
from training_core.types import RolloutGroup

NOWHERE = RunDir("/nonexistent")
ITEMS = open_domain(ADDITION, NOWHERE, 0).held_out()
NO_NUMBER = [replace(item, answer="no number") for item in ITEMS]


def evaluation(**changes: Any) -> RunSpec:
    settings = small_spec().evaluation.model_dump() | changes
    return small_spec(evaluation=EvaluationSpec.model_validate(settings))


def run(
    policy: Policy,
    spec: RunSpec,
    items: list[PromptItem] = ITEMS,
    earlier: tuple[PastEvaluation, ...] = (),
) -> tuple[EvaluationOutcome, list[RolloutGroup]]:
    groups: list[RolloutGroup] = []
    outcome = Evaluator(spec, {"math/add": items}).run(
        policy, name="e0", earlier=earlier,
        on_progress=lambda *_: None, on_groups=groups.extend,
    )  # fmt: skip
    return outcome, groups


def past(evaluator: Evaluator, label: str, passes: dict[str, float], recipe: str = "") -> Any:
    return PastEvaluation(
        step=1, label=label, title=f"the {label}", recipe=recipe or evaluator.recipe,
        passes={"math/add": passes}, pass_at_1=0.0, reward=0.0,
    )  # type: ignore[arg-type]  # fmt: skip


def test_the_same_weights_give_the_same_answers(policy: Policy) -> None:
    """Sampling seeds belong to the item: neither the run's seed nor the order matters."""
    spec = evaluation(samples_per_prompt=3)
    first, _ = run(policy, spec)
    again, _ = run(policy, spec.model_copy(update={"seed": 99}), ITEMS[::-1])
    assert again.passes == first.passes
    assert again.overall.reward.value == pytest.approx(first.overall.reward.value)


def test_items_are_scored_by_the_share_of_their_samples(policy: Policy) -> None:
    outcome, groups = run(policy, evaluation(samples_per_prompt=4, success_threshold=-0.45))
    assert len(groups) == 6
    for group in groups:
        lengths = [rollout.tokens for rollout in group.rollouts]
        share = sum(length < 6 for length in lengths) / 4
        assert outcome.passes["math/add"][group.item.prompt_id] == share
    shares = outcome.passes["math/add"].values()
    assert outcome.overall.pass_at_1.value == pytest.approx(sum(shares) / 6)
    assert outcome.overall.pass_at_1.n == 6


def test_compared_with_anchors_of_the_same_recipe_only(policy: Policy) -> None:
    spec = evaluation()
    evaluator = Evaluator(spec, {"math/add": ITEMS})
    none = dict.fromkeys((item.prompt_id for item in ITEMS), 0.0)
    earlier = (
        past(evaluator, "start", none),
        past(evaluator, "interval", none),
        past(evaluator, "stage_end", dict.fromkeys(none, 1.0)),
        past(evaluator, "start", none, recipe="another"),
    )
    outcome, _ = run(policy, spec, earlier=earlier)
    compared = {one.against_label: one.difference for one in outcome.overall.compared}
    assert compared.keys() == {"the start", "the stage_end"}
    share = outcome.overall.pass_at_1.value
    assert compared["the start"].value == pytest.approx(share)
    assert compared["the stage_end"].value == pytest.approx(share - 1.0)
    assert compared["the start"].n == 6


def test_what_cannot_be_scored_is_in_no_mean(policy: Policy) -> None:
    spec = evaluation(success_reward="correctness", samples_per_prompt=2)
    outcome, _ = run(policy, spec, [*ITEMS[:4], *NO_NUMBER[4:]])
    assert outcome.overall.unscored == 4
    assert outcome.overall.pass_at_1.n == 4
    assert outcome.overall.components["correctness"].n == 4
    assert outcome.overall.components["length"].n == 6
    assert evaluation_metrics(outcome)["eval/unscored"] == pytest.approx(4 / 12)


def test_nothing_scored_is_no_number_and_a_share_of_one(policy: Policy) -> None:
    outcome, _ = run(policy, evaluation(success_reward="correctness"), NO_NUMBER)
    assert math.isnan(outcome.overall.pass_at_1.value)
    assert math.isnan(outcome.overall.reward.value)
    assert evaluation_metrics(outcome)["eval/unscored"] == 1.0


def test_recipe_is_what_must_be_equal() -> None:
    base = recipe_hash(evaluation(), ITEMS)
    others = [
        recipe_hash(evaluation(temperature=0.0), ITEMS),
        recipe_hash(evaluation(max_new_tokens=7), ITEMS),
        recipe_hash(evaluation(samples_per_prompt=2), ITEMS),
        recipe_hash(evaluation(success_threshold=0.0), ITEMS),
        recipe_hash(evaluation(), ITEMS[:-1]),
        recipe_hash(evaluation(), NO_NUMBER),
        recipe_hash(
            small_spec(reward=small_spec().reward.model_validate({"root": {"type": "format"}})),
            ITEMS,
        ),
    ]
    assert len({base, *others}) == len(others) + 1
    assert recipe_hash(evaluation().model_copy(update={"seed": 5, "name": "x"}), ITEMS) == base


def write_dataset(run_dir: RunDir) -> DatasetDomain:
    """Records whose answers no reward can compare with, on either side."""
    records = [
        DatasetRecord(
            record_id=f"r{n}",
            messages=(Message(role="user", content=f"question {n}"),),
            answer="no number",
            split="held_out" if n % 2 else "train",
        )
        for n in range(8)
    ]
    path = run_dir.dataset_file("v1")
    path.parent.mkdir(parents=True)
    path.write_text("".join(f"{record.model_dump_json()}\n" for record in records))
    return DatasetDomain(name="odd", dataset_version="v1")


def test_a_run_without_any_score_goes_on_and_has_no_best(tmp_path: Path) -> None:
    """Rewards that all fail teach nothing, count as nothing and are told as such."""
    run_dir = RunDir(tmp_path)
    domain = write_dataset(run_dir)
    spec = small_spec(
        domains=(domain,),
        evaluation=EvaluationSpec(max_new_tokens=6, interval_steps=3),
    )
    new_run(tmp_path, spec)
    assert run_here(run_dir).outcome == "succeeded"
    events = read_events(run_dir)
    rows = [e.values for e in of_kind(events, "metrics") if "loss" in e.values]
    assert {row["rewards/correctness/unscored"] for row in rows} == {1.0}
    assert all("reward" not in row and row["loss"] == row["grad_norm"] == 0.0 for row in rows)
    assert not [e for e in of_kind(events, "checkpoint") if e.is_best]


def test_the_first_evaluation_with_a_number_becomes_the_best(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that could not be scored does not stand in its way for ever."""
    passed = Evaluator.passed

    def fail_first(self: Evaluator, rollout: Any) -> bool | None:
        early = len(of_kind(read_events(run_dir), "evaluation")) < 2
        return None if early else passed(self, rollout)

    run_dir = new_run(tmp_path, small_spec())
    monkeypatch.setattr(Evaluator, "passed", fail_first)
    run_here(run_dir)
    best = {e.step for e in of_kind(read_events(run_dir), "checkpoint") if e.is_best}
    assert 4 not in best
    assert best


def test_greedy_evaluation_ignores_seeds(policy: Policy) -> None:
    outcome, groups = run(policy, evaluation(temperature=0.0, samples_per_prompt=3))
    for group in groups:
        assert len({rollout.completion.token_ids for rollout in group.rollouts}) == 1
    assert set(outcome.passes["math/add"].values()) <= {0.0, 1.0}


def test_the_first_piece_of_an_evaluation_is_small(policy: Policy) -> None:
    """So that something can be read within seconds."""
    pieces: list[int] = []
    spec = evaluation(samples_per_prompt=8)
    Evaluator(spec, {"math/add": ITEMS}).run(
        policy, name="e0", earlier=(),
        on_progress=lambda *_: None, on_groups=lambda groups: pieces.append(len(groups)),
    )  # fmt: skip
    assert pieces == [2, 4]


def test_progress_of_an_evaluation_runs_through(policy: Policy) -> None:
    heard: list[tuple[int, int]] = []
    spec = evaluation(samples_per_prompt=8)
    evaluator = Evaluator(spec, {"math/add": ITEMS})
    outcome = evaluator.run(
        policy, name="e0", earlier=(),
        on_progress=lambda done, tokens: heard.append((done, tokens)), on_groups=lambda _: None,
    )  # fmt: skip
    assert heard == sorted(heard)
    assert heard[-1][0] == evaluator.rollouts == 48
    assert heard[-1][1] == pytest.approx(48 * outcome.overall.mean_length_tokens)


def test_an_sft_stage_alone_is_a_run(tmp_path: Path) -> None:
    run_dir = new_run(tmp_path, small_spec(stages=(SFT,)))
    assert run_here(run_dir).step == 4
    labels = [e.label for e in of_kind(read_events(run_dir), "evaluation")]
    assert labels == ["start", "final"]
