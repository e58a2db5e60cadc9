"""The clipped surrogate against vectors worked out by hand."""

from __future__ import annotations

import math

import pytest
import torch

from training_core.losses.policy_gradient import MAX_LOG_RATIO, clipped_surrogate, token_log_ratio

RATIOS = torch.tensor([0.5, 0.9, 1.0, 1.25, 2.0])


def surrogate(ratios: torch.Tensor, advantage: float, low: float, high: float):  # type: ignore[no-untyped-def]
    return clipped_surrogate(
        ratios.log(), torch.full_like(ratios, advantage), clip_low=low, clip_high=high
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


def test_clipped_tokens_are_those_without_gradient() -> None:
    for advantage, low, high in ((1.0, 0.2, 0.28), (-1.0, 0.2, 0.28), (1.0, 0.2, 0.2)):
        log_ratio = RATIOS.log().requires_grad_()
        found = clipped_surrogate(
            log_ratio, torch.full_like(RATIOS, advantage), clip_low=low, clip_high=high
        )
        (gradient,) = torch.autograd.grad(found.loss_N.sum(), log_ratio)
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


def test_log_ratio_is_new_minus_old() -> None:
    found = token_log_ratio(torch.tensor([-1.0, -3.0]), torch.tensor([-1.5, -2.0]))
    assert found.tolist() == [0.5, -1.0]


def test_a_broken_policy_gives_large_not_infinite_losses() -> None:
    log_ratio = token_log_ratio(torch.tensor([0.0, -1e4]), torch.tensor([-1e4, 0.0]))
    assert log_ratio.tolist() == [MAX_LOG_RATIO, -MAX_LOG_RATIO]
    found = clipped_surrogate(log_ratio, torch.tensor([-1.0, -1.0]), clip_low=0.2, clip_high=0.2)
    assert found.loss_N.tolist() == pytest.approx([math.exp(MAX_LOG_RATIO), 0.8])
