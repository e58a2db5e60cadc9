"""AdamW with float32 master weights, and its learning rate as a pure function of the step.

Called by `training_core.train`. There is no scheduler object: the rate depends on the spec and on
the step alone, so there is no state of it to restore.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import nn

from training_core.contract.stages import OptimiserSpec


def build_optimiser(spec: OptimiserSpec, parameters: Sequence[nn.Parameter]) -> torch.optim.AdamW:
    """AdamW (Loshchilov and Hutter 2019); its fused kernel reads each weight once."""
    return torch.optim.AdamW(
        parameters,
        lr=spec.learning_rate,
        betas=(spec.beta1, spec.beta2),
        eps=spec.eps,
        weight_decay=spec.weight_decay,
        fused=True,
    )


def learning_rate_at(spec: OptimiserSpec, *, step: int, steps: int) -> float:
    """Rate of the 1-based `step` of a stage of `steps`: linear warm-up, then decay to 0.

    The last step of a decaying stage still has a rate above 0.
    """
    if step <= spec.warmup_steps:
        return spec.learning_rate * step / spec.warmup_steps
    if spec.decay == "constant":
        return spec.learning_rate
    progress = (step - 1 - spec.warmup_steps) / max(1, steps - spec.warmup_steps)
    if spec.decay == "linear":
        return spec.learning_rate * (1.0 - progress)
    return spec.learning_rate * 0.5 * (1.0 + math.cos(math.pi * progress))


def set_learning_rate(optimiser: torch.optim.Optimizer, rate: float) -> None:
    """Use a rate from the next update on."""
    for group in optimiser.param_groups:
        group["lr"] = rate
