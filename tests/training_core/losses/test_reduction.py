"""One divisor for the whole window."""

from __future__ import annotations

import pytest
import torch
from accelerate import Accelerator

from training_core.contract.algorithms import Reduction
from training_core.losses.reduction import Window, measure_window, sum_gradients


@pytest.fixture(scope="module")
def accelerator() -> Accelerator:
    return Accelerator(cpu=True)


@pytest.mark.parametrize(
    ("reduction", "loss"),
    # Loss 1 on the short row, 0 on the long one, limit 10.
    [("token_mean", 0.2), ("sequence_mean", 0.5), ("constant", 0.1)],
)
def test_two_rows_of_two_and_eight_tokens(
    accelerator: Accelerator, reduction: Reduction, loss: float
) -> None:
    window = measure_window(accelerator, tokens=10, sequences=2)
    assert 2 * window.token_weight(reduction, length=2, longest=10) == pytest.approx(loss)


@pytest.mark.parametrize("reduction", ["token_mean", "sequence_mean", "constant"])
def test_nothing_to_learn_from_stays_finite(accelerator: Accelerator, reduction: Reduction) -> None:
    window = measure_window(accelerator, tokens=0, sequences=0)
    assert window.token_weight(reduction, length=0, longest=10) == 0.0


def test_divisor_counts_beyond_float32_exactly(accelerator: Accelerator) -> None:
    assert measure_window(accelerator, tokens=2**24 + 1, sequences=3) == Window(2**24 + 1, 3)


def test_a_weight_without_gradient_counts_as_zero(accelerator: Accelerator) -> None:
    weights = [torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(3))]
    weights[0].grad = torch.tensor([1.0, 2.0])
    sum_gradients(accelerator, weights)
    assert [weight.grad.tolist() for weight in weights if weight.grad is not None] == [
        [1.0, 2.0],
        [0.0, 0.0, 0.0],
    ]
