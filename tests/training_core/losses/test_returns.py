"""Advantages of tokens against vectors worked out by hand."""

from __future__ import annotations

import math

import pytest
import torch

from training_core.losses.returns import (
    WHITEN_EPS,
    explained_variance,
    generalised_advantages,
    token_returns,
    token_rewards,
    whiten,
)


def test_the_reward_stands_at_the_last_token_that_was_sampled() -> None:
    assert token_rewards(2.0, None, 3).tolist() == [0.0, 0.0, 2.0]
    assert token_rewards(2.0, torch.tensor([0.5, 0.25, 1.0]), 3).tolist() == [-0.5, -0.25, 1.0]
    assert token_rewards(2.0, None, 0).tolist() == []


def test_what_is_still_to_come() -> None:
    assert token_returns(torch.tensor([-0.5, -0.25, 1.0])).tolist() == [0.25, 0.75, 1.0]


def test_generalised_advantages_golden() -> None:
    """Deltas 0, 0, .5 with gamma 1 and lambda .95."""
    values_N = torch.full((3,), 0.5).double()
    found_N = generalised_advantages(
        torch.tensor([0.0, 0.0, 1.0]).double(), values_N, gamma=1.0, gae_lambda=0.95
    )
    assert found_N.tolist() == pytest.approx([0.45125, 0.475, 0.5])
    assert (found_N + values_N).tolist() == pytest.approx([0.95125, 0.975, 1.0])


def test_lambda_1_trusts_the_returns_and_0_the_values() -> None:
    rewards_N, values_N = torch.tensor([0.1, 0.0, 1.0]).double(), torch.tensor([0.3, 0.6, 0.2])
    full_N = generalised_advantages(rewards_N, values_N.double(), gamma=1.0, gae_lambda=1.0)
    assert full_N.tolist() == pytest.approx((token_returns(rewards_N) - values_N).tolist())
    near_N = generalised_advantages(rewards_N, values_N.double(), gamma=0.9, gae_lambda=0.0)
    expected = [0.1 + 0.9 * 0.6 - 0.3, 0.9 * 0.2 - 0.6, 1.0 - 0.2]
    assert near_N.tolist() == pytest.approx(expected, abs=1e-6)


def test_whitening_counts_tokens_not_completions() -> None:
    """Values 1, 1, 1, 5: mean 2, variance (n - 1) 4."""
    found = whiten([torch.ones(3).double(), torch.tensor([5.0]).double()])
    scale = math.sqrt(4 + WHITEN_EPS)
    assert found[0].tolist() == pytest.approx([-1 / scale] * 3)
    assert found[1].tolist() == pytest.approx([3 / scale])


@pytest.mark.parametrize(
    "rows", [[], [torch.zeros(0)], [torch.full((3,), 0.1)] * 2, [torch.tensor([7.0])]]
)
def test_equal_values_give_exactly_nothing(rows: list[torch.Tensor]) -> None:
    assert all(bool((row == 0).all()) for row in whiten(rows))


def test_rewards_that_differ_by_rounding_alone_are_equal() -> None:
    rows = [torch.tensor([0.1 + 0.2]).double(), torch.tensor([0.3]).double()]
    assert [row.tolist() for row in whiten(rows)] == [[0.0], [0.0]]


def test_explained_variance() -> None:
    returns_N = torch.tensor([1.0, 2.0, 3.0])
    assert explained_variance(returns_N, returns_N) == 1.0
    assert explained_variance(torch.full((3,), 9.0), returns_N) == pytest.approx(0.0)
    assert explained_variance(-returns_N, returns_N) == pytest.approx(-3.0)
    assert math.isnan(explained_variance(returns_N, torch.ones(3)))
    assert math.isnan(explained_variance(torch.zeros(0), torch.zeros(0)))
