"""One divisor for the whole window."""

from __future__ import annotations

import pytest
import torch
from accelerate import Accelerator

from training_core.losses.reduction import sum_gradients, token_mean, window_divisor


@pytest.fixture(scope="module")
def accelerator() -> Accelerator:
    return Accelerator(cpu=True)


def test_two_rows_of_two_and_eight_tokens(accelerator: Accelerator) -> None:
    """Loss 1 on the short row, 0 on the long one: 2 of 10 tokens, not half of the rows."""
    loss_N = torch.tensor([1.0] * 2 + [0.0] * 8)
    assert float(token_mean(loss_N, divisor_tokens=window_divisor(accelerator, 10))) == (
        pytest.approx(0.2)
    )


def test_shares_of_micro_batches_add_up(accelerator: Accelerator) -> None:
    loss_N = torch.arange(10.0)
    divisor = window_divisor(accelerator, 10)
    for sizes in ([10], [3, 7], [1, 2, 3, 4]):
        shares = [token_mean(part, divisor_tokens=divisor) for part in loss_N.split(sizes)]
        assert float(sum(shares)) == pytest.approx(4.5)


def test_nothing_to_learn_from_stays_finite(accelerator: Accelerator) -> None:
    assert window_divisor(accelerator, 0) == 1.0
    assert float(token_mean(torch.zeros(0), divisor_tokens=1.0)) == 0.0


def test_divisor_counts_beyond_float32_exactly(accelerator: Accelerator) -> None:
    assert window_divisor(accelerator, 2**24 + 1) == 2**24 + 1


def test_a_weight_without_gradient_counts_as_zero(accelerator: Accelerator) -> None:
    weights = [torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(3))]
    weights[0].grad = torch.tensor([1.0, 2.0])
    sum_gradients(accelerator, weights)
    assert [weight.grad.tolist() for weight in weights if weight.grad is not None] == [
        [1.0, 2.0],
        [0.0, 0.0, 0.0],
    ]
