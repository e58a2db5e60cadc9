"""Learning rates as a function of the step, and AdamW as the spec says."""

from __future__ import annotations

import pytest
import torch

from training_core.contract.stages import OptimiserSpec
from training_core.models.optimiser import build_optimiser, learning_rate_at, set_learning_rate


def rates(steps: int, **settings: object) -> list[float]:
    spec = OptimiserSpec.model_validate({"learning_rate": 1.0} | settings)
    return [learning_rate_at(spec, step=step, steps=steps) for step in range(1, steps + 1)]


def test_constant() -> None:
    assert rates(3) == [1.0, 1.0, 1.0]


def test_warmup_rises_from_the_first_step_on() -> None:
    assert rates(6, warmup_steps=4) == [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]


def test_linear_decay_ends_above_nothing() -> None:
    assert rates(4, decay="linear") == [1.0, 0.75, 0.5, 0.25]
    assert rates(6, decay="linear", warmup_steps=2) == [0.5, 1.0, 1.0, 0.75, 0.5, 0.25]


def test_cosine_decay() -> None:
    assert rates(4, decay="cosine") == pytest.approx([1.0, 0.853553, 0.5, 0.146447], abs=1e-6)


def test_warmup_longer_than_the_stage() -> None:
    assert rates(2, warmup_steps=4, decay="cosine") == [0.25, 0.5]


def test_adamw_takes_its_settings_and_its_rate() -> None:
    weight = torch.nn.Parameter(torch.ones(3))
    spec = OptimiserSpec(learning_rate=0.5, beta1=0.8, beta2=0.9, eps=1e-3, weight_decay=0.1)
    optimiser = build_optimiser(spec, [weight])
    set_learning_rate(optimiser, 0.01)
    weight.grad = torch.tensor([1.0, -2.0, 0.0])
    optimiser.step()
    # First step: m / (1 - beta1) = g and sqrt(v / (1 - beta2)) = |g|; then the decoupled decay.
    expected = [
        1.0 - 0.01 * 0.1 - 0.01 * 1.0 / (1.0 + 1e-3),
        1.0 - 0.01 * 0.1 + 0.01 * 2.0 / (2.0 + 1e-3),
        1.0 - 0.01 * 0.1,
    ]
    assert weight.tolist() == pytest.approx(expected, abs=1e-6)
