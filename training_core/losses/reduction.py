"""From losses of tokens to the loss of an optimiser window: one divisor, computed once.

Called by `algorithms.update`, for policy and supervised losses alike. The divisor is the token
count of the whole window over all processes, never of a micro-batch: only so does splitting a batch
leave its gradient unchanged.
"""

from __future__ import annotations

import torch
from accelerate import Accelerator


def token_mean(loss_N: torch.Tensor, *, divisor_tokens: float) -> torch.Tensor:
    """sum(loss) / divisor: a micro-batch's share of the window's mean over tokens.

    Shapes: loss_N (N,) -> scalar. An empty micro-batch gives 0.
    """
    return loss_N.sum() / divisor_tokens


def window_divisor(accelerator: Accelerator, tokens: int) -> float:
    """Tokens of the optimiser window over all processes, at least 1.

    Gradients are summed over processes, so the divisor must count all of them.
    """
    count = torch.tensor(float(tokens), dtype=torch.float64, device=accelerator.device)
    total: torch.Tensor = accelerator.reduce(count, reduction="sum")
    return max(1.0, float(total))


def sum_gradients(accelerator: Accelerator, parameters: list[torch.nn.Parameter]) -> None:
    """Add up the gradients of all processes; a weight without one counts as 0.

    Every process calls it for every weight, so that no process waits for another for ever.
    """
    for weight in parameters:
        if weight.grad is None:
            weight.grad = torch.zeros_like(weight)
        if accelerator.num_processes > 1:
            weight.grad = accelerator.reduce(weight.grad, reduction="sum")
