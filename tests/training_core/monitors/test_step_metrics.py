"""Metrics of a step: means over rollouts or tokens, unscored rollouts in no mean of rewards."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.training_core.algorithms.rollout_groups import make_group, make_rollout
from training_core.contract.metrics import find_metric
from training_core.contract.rollouts import RewardScore
from training_core.monitors.step_metrics import rollout_metrics
from training_core.types import Rollout


def scored(
    length: int, reward: float | None, correct: float | None, finish: str = "eos"
) -> Rollout:
    score = RewardScore(
        name="correctness",
        weight=1.0,
        status="error" if correct is None else "ok",
        value=correct,
        explanation="",
    )
    rollout = make_rollout([7] * length, reward, finish)  # type: ignore[arg-type]
    return replace(rollout, scores=(score,))


def passed(rollout: Rollout) -> bool | None:
    """Whether the correctness is at least a half."""
    value = rollout.value("correctness")
    return None if value is None else value >= 0.5


def metrics() -> dict[str, float]:
    return rollout_metrics(
        [
            make_group("a", [scored(2, 1.0, 1.0), scored(4, 0.0, 0.0)], domain="math/add"),
            make_group("b", [scored(8, 0.5, 1.0, "length"), scored(2, None, None)], domain="b"),
        ],
        passed,
    )


def test_golden() -> None:
    found = metrics()
    assert found["reward"] == 0.5
    assert found["reward_std"] == 0.5
    assert found["rewards/correctness/mean"] == pytest.approx(2 / 3)
    assert found["rewards/correctness/std"] == pytest.approx(3**-0.5)
    assert found["rewards/correctness/unscored"] == 0.25
    assert found["completions/mean_length"] == 4.0
    assert (found["completions/min_length"], found["completions/max_length"]) == (2.0, 8.0)
    assert found["completions/clipped_ratio"] == 0.25
    assert found["frac_reward_zero_std"] == 0.5
    assert found["domain/math/add/reward"] == 0.5
    assert found["domain/b/reward"] == 0.5
    assert found["domain/math/add/prompts"] == found["domain/b/prompts"] == 1.0


def test_lengths_of_solved_and_unsolved() -> None:
    found = metrics()
    assert found["completions/mean_length_solved"] == 5.0
    assert found["completions/mean_length_unsolved"] == 4.0
    assert found["completions/mean_terminated_length"] == pytest.approx(8 / 3)


def test_why_tokens_teach_nothing() -> None:
    """Each token has one reason at most; lengths 1, 2, 4, 8, 16 and 32."""
    taught, dead, masked, unscored = (
        replace(make_rollout([5] * 1, 1.0), advantage=0.5),
        replace(make_rollout([5] * 2, 1.0), advantage=0.0),
        replace(make_rollout([5] * 4, 1.0, "length"), is_masked=True),
        make_rollout([5] * 8, None),
    )
    groups = [
        make_group("a", [taught, replace(taught, advantage=-0.5), masked, unscored]),
        make_group("b", [dead, dead, masked, unscored]),
    ]
    found = rollout_metrics(groups, passed)
    total = 1 + 1 + 4 + 8 + 2 + 2 + 4 + 8
    assert found["tokens/unscored_frac"] == 16 / total
    assert found["tokens/masked_frac"] == found["tokens/truncated_frac"] == 8 / total
    assert found["tokens/dead_frac"] == 4 / total


def test_each_domain_by_itself() -> None:
    found = metrics()
    assert found["domain/b/completions/mean_length"] == 5.0
    assert found["domain/b/completions/clipped_ratio"] == 0.5
    assert found["domain/math/add/frac_reward_zero_std"] == 0.0
    assert found["domain/b/frac_reward_zero_std"] == 1.0
    assert found["domain/b/entropy"] == 0.5


def test_entropy_is_a_mean_of_tokens() -> None:
    """Lengths 1 and 9 with 1 and 0 nats a token: 1 of 10 tokens, not half of the rollouts."""
    short, long = make_rollout([5], 1.0), make_rollout([5] * 9, 0.0)
    rollouts = [
        replace(short, completion=replace(short.completion, entropy_nats=1.0)),
        replace(long, completion=replace(long.completion, entropy_nats=0.0)),
    ]
    assert rollout_metrics([make_group("a", rollouts)], passed)["entropy"] == pytest.approx(0.1)


def test_a_step_without_any_score_has_no_reward() -> None:
    found = rollout_metrics([make_group("a", [scored(2, None, None)] * 2)], passed)
    assert not {"reward", "reward_std", "rewards/correctness/mean"} & found.keys()
    assert found["rewards/correctness/unscored"] == 1.0
    assert found["frac_reward_zero_std"] == 1.0


def test_every_metric_stands_in_the_catalogue() -> None:
    assert [name for name in metrics() if find_metric(name) is None] == []
