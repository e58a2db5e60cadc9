"""From losses of tokens to the loss of an optimiser window: one divisor, computed once.

Called by `algorithms.update` and `sft`. The divisor belongs to the whole window over all processes,
never to a micro-batch: only so does splitting a batch leave its gradient unchanged. It serves
policy, divergence, entropy and value alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from accelerate import Accelerator

from training_core.contract.algorithms import Reduction


@dataclass(frozen=True)
class Window:
    """What an optimiser window holds over all processes, tokens without a gradient included."""

    tokens: float
    sequences: float

    def token_weight(self, reduction: Reduction, length: int, longest: int) -> float:
        """What the loss of each token of a completion is multiplied by; 0 in an empty window.

        token_mean: 1 / tokens; sequence_mean: 1 / (sequences length); constant: 1 / (sequences
        longest), with `longest` the limit of the sampler, not the longest that was sampled (Liu et
        al. 2025, arXiv 2503.20783).
        """
        if self.sequences == 0 or self.tokens == 0:
            return 0.0
        if reduction == "token_mean":
            return 1.0 / self.tokens
        return 1.0 / (self.sequences * (length if reduction == "sequence_mean" else longest))


def measure_window(accelerator: Accelerator, *, tokens: int, sequences: int) -> Window:
    """The window over all processes; each calls it, with its own share.

    Gradients are summed over processes, so the divisor must count all of them.
    """
    counts = torch.tensor([tokens, sequences], dtype=torch.float64, device=accelerator.device)
    total: torch.Tensor = accelerator.reduce(counts, reduction="sum")
    return Window(*total.tolist())


def sum_gradients(accelerator: Accelerator, parameters: list[torch.nn.Parameter]) -> None:
    """Add up the gradients of all processes; a weight without one counts as 0.

    Every process calls it for every weight, so that no process waits for another for ever.
    """
    for weight in parameters:
        if weight.grad is None:
            weight.grad = torch.zeros_like(weight)
        if accelerator.num_processes > 1:
            weight.grad = accelerator.reduce(weight.grad, reduction="sum")
