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


def metrics() -> dict[str, float]:
    return rollout_metrics(
        [
            make_group("a", [scored(2, 1.0, 1.0), scored(4, 0.0, 0.0)], domain="math/add"),
            make_group("b", [scored(8, 0.5, 1.0, "length"), scored(2, None, None)], domain="b"),
        ]
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


def test_entropy_is_a_mean_of_tokens() -> None:
    """Lengths 1 and 9 with 1 and 0 nats a token: 1 of 10 tokens, not half of the rollouts."""
    short, long = make_rollout([5], 1.0), make_rollout([5] * 9, 0.0)
    rollouts = [
        replace(short, completion=replace(short.completion, entropy_nats=1.0)),
        replace(long, completion=replace(long.completion, entropy_nats=0.0)),
    ]
    assert rollout_metrics([make_group("a", rollouts)])["entropy"] == pytest.approx(0.1)


def test_a_step_without_any_score_has_no_reward() -> None:
    found = rollout_metrics([make_group("a", [scored(2, None, None)] * 2)])
    assert not {"reward", "reward_std", "rewards/correctness/mean"} & found.keys()
    assert found["rewards/correctness/unscored"] == 1.0
    assert found["frac_reward_zero_std"] == 1.0


def test_every_metric_stands_in_the_catalogue() -> None:
    assert [name for name in metrics() if find_metric(name) is None] == []
