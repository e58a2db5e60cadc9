"""The next token of each row of a decode batch, and its log-probability.

Called by `rollouts.engine`. A row draws one uniform number for each token from a generator of its
own and inverts the cumulative distribution, so its tokens do not depend on the other rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

BLOCK_DRAWS = 64


class UniformStreams:
    """One stream of uniform numbers for each row."""

    def __init__(self, seeds: Sequence[int]) -> None:
        self._generators = [torch.Generator().manual_seed(seed) for seed in seeds]
        self._block_BK = torch.empty(len(seeds), 0, dtype=torch.float64)
        self._start = 0

    def column_B(self, position: int, rows: torch.Tensor) -> torch.Tensor:
        """The numbers for the token at `position`, for the given rows. Positions must not fall."""
        while position >= self._start + self._block_BK.shape[1]:
            self._start += self._block_BK.shape[1]
            self._block_BK = torch.stack(
                [
                    torch.rand(BLOCK_DRAWS, generator=generator, dtype=torch.float64)
                    for generator in self._generators
                ]
            )
        return self._block_BK[rows, position - self._start]


@dataclass(frozen=True)
class Choice:
    """The chosen token of each row. Shapes: all (B,)."""

    tokens_B: torch.Tensor
    logprobs_B: torch.Tensor
    """Log-probability of the token, in nats."""
    entropy_B: torch.Tensor
    """Entropy of the distribution it was drawn from, in nats."""


def sample_tokens(
    logits_BV: torch.Tensor, uniform_B: torch.Tensor, *, temperature: float
) -> Choice:
    """Draw a token for each row: the first whose cumulative probability exceeds the uniform.

    Shapes: logits_BV float32, uniform_B in [0, 1). Probabilities are softmax(logits / temperature).
    """
    logprobs_BV = torch.log_softmax(logits_BV / temperature, dim=-1)
    probs_BV = logprobs_BV.exp()
    entropy_B = -(probs_BV * logprobs_BV).nan_to_num_(nan=0.0).sum(dim=-1)
    cumulative_BV = probs_BV.cumsum_(dim=-1)
    total_B1 = cumulative_BV[:, -1:]
    point_B1 = uniform_B.to(cumulative_BV)[:, None] * total_B1
    # A product that rounds up to the total would choose a token beyond all probability.
    point_B1 = torch.minimum(point_B1, total_B1.nextafter(torch.zeros_like(total_B1)))
    tokens_B1 = torch.searchsorted(cumulative_BV, point_B1, right=True)
    # Logits that are no numbers have no such token: any will do, its log-probability is NaN.
    tokens_B1.clamp_(max=logits_BV.shape[-1] - 1)
    return Choice(tokens_B1[:, 0], logprobs_BV.gather(1, tokens_B1)[:, 0], entropy_B)


def likeliest_tokens(logits_BV: torch.Tensor) -> Choice:
    """Greedy choice, with log-probability and entropy at temperature 1."""
    tokens_B1 = logits_BV.argmax(dim=-1, keepdim=True)
    logprobs_BV = torch.log_softmax(logits_BV, dim=-1)
    entropy_B = -(logprobs_BV.exp() * logprobs_BV).nan_to_num_(nan=0.0).sum(dim=-1)
    return Choice(tokens_B1[:, 0], logprobs_BV.gather(1, tokens_B1)[:, 0], entropy_B)
