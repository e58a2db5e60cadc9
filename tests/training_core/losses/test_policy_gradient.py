"""Ratio and surrogates against vectors worked out by hand."""

from __future__ import annotations

import math

import pytest
import torch

from training_core.contract.algorithms import Ratio
from training_core.losses.policy_gradient import (
    MAX_LOG_RATIO,
    Surrogate,
    cispo_surrogate,
    clipped_surrogate,
    log_ratio,
    reinforce_surrogate,
    sum_over_completion,
)

RATIOS = torch.tensor([0.5, 0.9, 1.0, 1.25, 2.0])


def surrogate(
    ratios: torch.Tensor, advantage: float, low: float, high: float, dual: float | None = None
) -> Surrogate:
    return clipped_surrogate(
        ratios.log(),
        torch.full_like(ratios, advantage),
        clip_low=low,
        clip_high=high,
        dual_clip=dual,
    )


@pytest.mark.parametrize(
    ("advantage", "low", "high", "loss"),
    [
        # A > 0: -min(r, 1 + high) A; the lower bound never helps a good action.
        (2.0, 0.2, 0.2, [-1.0, -1.8, -2.0, -2.4, -2.4]),
        (2.0, 0.2, 0.28, [-1.0, -1.8, -2.0, -2.5, -2.56]),
        # A < 0: -max(r, 1 - low) A = max(r, 1 - low) |A|.
        (-1.0, 0.2, 0.2, [0.8, 0.9, 1.0, 1.25, 2.0]),
        (-1.0, 0.3, 0.2, [0.7, 0.9, 1.0, 1.25, 2.0]),
        (0.0, 0.2, 0.2, [0.0, 0.0, 0.0, 0.0, 0.0]),
    ],
)
def test_golden(advantage: float, low: float, high: float, loss: list[float]) -> None:
    found = surrogate(RATIOS, advantage, low, high)
    assert found.loss_N.tolist() == pytest.approx(loss, abs=1e-6)
    assert found.ratio_N.tolist() == pytest.approx(RATIOS.tolist(), abs=1e-6)


def test_the_second_bound_holds_a_bad_token_that_has_become_far_likelier() -> None:
    found = surrogate(torch.tensor([2.0, 3.5, 10.0]), -1.0, 0.2, 0.2, dual=3.0)
    assert found.loss_N.tolist() == pytest.approx([2.0, 3.0, 3.0], abs=1e-5)
    assert found.clipped_high_N.tolist() == [False, True, True]
    good = surrogate(torch.tensor([10.0]), 1.0, 0.2, 0.2, dual=3.0)
    assert good.loss_N.tolist() == pytest.approx([-1.2], abs=1e-6)


@pytest.mark.parametrize("dual", [None, 1.5])
def test_clipped_tokens_are_those_without_gradient(dual: float | None) -> None:
    for advantage, low, high in ((1.0, 0.2, 0.28), (-1.0, 0.2, 0.28), (1.0, 0.2, 0.2)):
        moved_N = RATIOS.log().requires_grad_()
        found = clipped_surrogate(
            moved_N,
            torch.full_like(RATIOS, advantage),
            clip_low=low,
            clip_high=high,
            dual_clip=dual,
        )
        (gradient,) = torch.autograd.grad(found.loss_N.sum(), moved_N)
        clipped = found.clipped_low_N | found.clipped_high_N
        assert clipped.tolist() == (gradient == 0).tolist()
        # Where it is not clipped the gradient is that of -r A, so -r A itself.
        expected = -(RATIOS * advantage)[~clipped]
        assert gradient[~clipped].tolist() == pytest.approx(expected.tolist(), abs=1e-6)


def test_which_bound_had_the_say() -> None:
    up, down = surrogate(RATIOS, 1.0, 0.2, 0.2), surrogate(RATIOS, -1.0, 0.2, 0.2)
    assert up.clipped_high_N.tolist() == [False, False, False, True, True]
    assert not up.clipped_low_N.any()
    assert down.clipped_low_N.tolist() == [True, False, False, False, False]
    assert not down.clipped_high_N.any()


def test_cispo_weighs_by_the_clipped_ratio_and_leaves_no_token_out() -> None:
    """Ratio 7 under a cap of 5 weighs 5; with bounds .2 on both sides it weighs 1.2."""
    logprobs_N = torch.tensor([-1.0, -2.0, -3.0], requires_grad=True)
    moved_N, advantages_N = torch.tensor([7.0, 0.1, 1.0]).log(), torch.tensor([1.0, -1.0, 2.0])
    found = cispo_surrogate(logprobs_N, moved_N, advantages_N, clip_low=1.0, clip_high=4.0)
    assert found.loss_N.tolist() == pytest.approx([5.0, -0.2, 6.0], abs=1e-5)
    (gradient,) = torch.autograd.grad(found.loss_N.sum(), logprobs_N)
    assert gradient.tolist() == pytest.approx([-5.0, 0.1, -2.0], abs=1e-5)
    assert found.clipped_high_N.tolist() == [True, False, False]
    both = cispo_surrogate(logprobs_N, moved_N, advantages_N, clip_low=0.2, clip_high=0.2)
    assert both.loss_N.tolist() == pytest.approx([1.2, -1.6, 6.0], abs=1e-5)
    assert both.clipped_low_N.tolist() == [False, True, False]


def test_reinforce_knows_no_ratio() -> None:
    logprobs_N = torch.tensor([-1.0, -2.0], requires_grad=True)
    found = reinforce_surrogate(logprobs_N, torch.tensor([2.0, -2.0]), torch.tensor([1.0, -3.0]))
    assert found.loss_N.tolist() == [1.0, -6.0]
    (gradient,) = torch.autograd.grad(found.loss_N.sum(), logprobs_N)
    assert gradient.tolist() == [-1.0, 3.0]
    assert not (found.clipped_low_N | found.clipped_high_N).any()


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        ("token", [0.3, -0.1, 0.5, -1.0, 0.8]),
        # The mean over each completion: exp(.1) = 1.10517 at both tokens of the first.
        ("sequence", [0.1, 0.1, 0.1, 0.1, 0.1]),
        ("trajectory", [0.2, 0.2, 0.3, 0.3, 0.3]),
    ],
)
def test_log_ratio_is_new_minus_old(level: Ratio, expected: list[float]) -> None:
    new_N = torch.tensor([-1.0, -2.0, -0.5, -3.0, -0.2], dtype=torch.float64)
    old_N = new_N - torch.tensor([0.3, -0.1, 0.5, -1.0, 0.8], dtype=torch.float64)
    found_N = log_ratio(new_N, old_N, torch.tensor([2, 3]), level)
    assert found_N.tolist() == pytest.approx(expected, abs=1e-12)


def test_the_ratio_of_a_completion_pulls_at_each_of_its_tokens() -> None:
    new_N = torch.zeros(5, dtype=torch.float64, requires_grad=True)
    found_N = log_ratio(new_N, torch.zeros(5), torch.tensor([2, 3]), "sequence")
    (gradient,) = torch.autograd.grad(found_N[0], new_N, retain_graph=True)
    assert gradient.tolist() == [0.5, 0.5, 0.0, 0.0, 0.0]
    (gradient,) = torch.autograd.grad(found_N.sum(), new_N)
    assert gradient.tolist() == pytest.approx([1.0] * 5)


def test_sums_stay_inside_their_completion() -> None:
    values_N = torch.tensor([1.0, 2.0, 4.0, 8.0])
    found_N = sum_over_completion(values_N, torch.tensor([1, 0, 3]))
    assert found_N.tolist() == [1.0, 14.0, 14.0, 14.0]


def test_a_broken_policy_gives_large_not_infinite_losses() -> None:
    moved_N = log_ratio(
        torch.tensor([0.0, -1e4]), torch.tensor([-1e4, 0.0]), torch.tensor([1, 1]), "token"
    )
    assert moved_N.tolist() == [MAX_LOG_RATIO, -MAX_LOG_RATIO]
    found = clipped_surrogate(moved_N, torch.tensor([-1.0, -1.0]), clip_low=0.2, clip_high=0.2)
    assert found.loss_N.tolist() == pytest.approx([math.exp(MAX_LOG_RATIO), 0.8])
