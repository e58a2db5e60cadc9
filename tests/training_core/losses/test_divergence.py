"""Divergence, its coefficient, and the sampler's correction, against values worked out by hand."""

from __future__ import annotations

import math

import pytest
import torch

from training_core.contract.algorithms import CorrectionSpec, Estimator
from training_core.losses.correction import correction_weights
from training_core.losses.divergence import adapted_coefficient, divergence
from training_core.losses.policy_gradient import MAX_LOG_RATIO


@pytest.mark.parametrize(("estimator", "value"), [("k1", 0.5), ("k2", 0.125), ("k3", 0.106531)])
def test_golden(estimator: Estimator, value: float) -> None:
    found = divergence(torch.tensor([-1.0]), torch.tensor([-1.5]), estimator)
    assert found.tolist() == pytest.approx([value], abs=1e-6)


@pytest.mark.parametrize(("estimator", "slope"), [("k1", 1.0), ("k2", 0.5), ("k3", 0.393469)])
def test_gradients(estimator: Estimator, slope: float) -> None:
    """k1 pulls the same whatever the distance, k2 by d, k3 by 1 - exp(-d)."""
    logprobs_N = torch.tensor([-1.0], requires_grad=True)
    found = divergence(logprobs_N, torch.tensor([-1.5]), estimator)
    (gradient,) = torch.autograd.grad(found.sum(), logprobs_N)
    assert gradient.tolist() == pytest.approx([slope], abs=1e-6)


@pytest.mark.parametrize("estimator", ["k1", "k3"])
def test_the_mean_of_k1_and_k3_is_the_divergence(estimator: Estimator) -> None:
    """Over all tokens of a distribution, weighed by it: sum p log(p / q)."""
    p, q = torch.tensor([0.5, 0.3, 0.2]).double(), torch.tensor([0.2, 0.2, 0.6]).double()
    exact = float((p * (p / q).log()).sum())
    assert float((p * divergence(p.log(), q.log(), estimator)).sum()) == pytest.approx(exact)


def test_a_token_that_the_reference_would_never_write_stays_finite() -> None:
    found = divergence(torch.tensor([-1.0, -900.0]), torch.tensor([-900.0, -1.0]), "k3")
    assert found.tolist() == pytest.approx(
        [MAX_LOG_RATIO - 1, math.exp(MAX_LOG_RATIO) - MAX_LOG_RATIO - 1], rel=1e-6
    )


@pytest.mark.parametrize(
    ("measured", "expected"),
    [
        (0.05, 1.0),
        (0.055, 1.0 + 0.1 * 0.064),
        (5.0, 1.0 + 0.2 * 0.064),
        (0.0, 1.0 - 0.2 * 0.064),
    ],
)
def test_the_coefficient_follows_the_target(measured: float, expected: float) -> None:
    found = adapted_coefficient(1.0, measured=measured, target=0.05, rollouts=64, horizon=1000)
    assert found == pytest.approx(expected)


def test_a_short_horizon_never_changes_more_than_a_fifth() -> None:
    assert adapted_coefficient(1.0, measured=9.0, target=0.05, rollouts=64, horizon=1) == 1.2


OLD_N = torch.tensor([-1.0, -1.0, -1.0])
SAMPLER_N = torch.tensor([-1.0 - math.log(1.5), -1.0 - math.log(4.0), -1.0 + math.log(2.0)])


@pytest.mark.parametrize(
    ("spec", "weights"),
    [
        (CorrectionSpec(), [1.0, 1.0, 1.0]),
        (CorrectionSpec(level="token"), [1.5, 2.0, 0.5]),
        (CorrectionSpec(level="token", cap=5.0), [1.5, 4.0, 0.5]),
        # Two completions: 1.5 * 4 = 6, and 0.5.
        (CorrectionSpec(level="sequence", cap=10.0), [6.0, 6.0, 0.5]),
        (CorrectionSpec(level="sequence"), [2.0, 2.0, 0.5]),
    ],
)
def test_weights_of_tokens_and_of_completions(spec: CorrectionSpec, weights: list[float]) -> None:
    found = correction_weights(spec, OLD_N, SAMPLER_N, torch.tensor([2, 1]))
    assert found.tolist() == pytest.approx(weights, rel=1e-6)
