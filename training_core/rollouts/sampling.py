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
    """The token of each draw. A draw; all (A,)."""

    tokens_A: torch.Tensor
    logprobs_A: torch.Tensor
    """Log-probability of the token, in nats."""
    entropy_A: torch.Tensor
    """Entropy of the distribution it was drawn from, in nats."""


def sample_tokens(
    logits_BV: torch.Tensor, rows_A: torch.Tensor, uniform_A: torch.Tensor, *, temperature: float
) -> Choice:
    """Draw tokens, each from a row: the first whose cumulative probability exceeds the uniform.

    Shapes: logits_BV float32, rows_A row of each draw, uniform_A in [0, 1). Probabilities are
    softmax(logits / temperature).
    """
    logprobs_BV = torch.log_softmax(logits_BV / temperature, dim=-1)
    probs_BV = logprobs_BV.exp()
    entropy_B = -(probs_BV * logprobs_BV).nan_to_num_(nan=0.0).sum(dim=-1)
    cumulative_AV = probs_BV.cumsum_(dim=-1)[rows_A]
    total_A1 = cumulative_AV[:, -1:]
    point_A1 = uniform_A.to(cumulative_AV)[:, None] * total_A1
    # A product that rounds up to the total would choose a token beyond all probability.
    point_A1 = torch.minimum(point_A1, total_A1.nextafter(torch.zeros_like(total_A1)))
    tokens_A = torch.searchsorted(cumulative_AV, point_A1, right=True)[:, 0]
    # Logits that are no numbers have no such token: any will do, its log-probability is NaN.
    tokens_A.clamp_(max=logits_BV.shape[-1] - 1)
    return Choice(tokens_A, logprobs_BV[rows_A, tokens_A], entropy_B[rows_A])


def likeliest_tokens(logits_BV: torch.Tensor, rows_A: torch.Tensor) -> Choice:
    """Greedy choice, with log-probability and entropy at temperature 1."""
    tokens_A = logits_BV.argmax(dim=-1)[rows_A]
    logprobs_BV = torch.log_softmax(logits_BV, dim=-1)
    entropy_B = -(logprobs_BV.exp() * logprobs_BV).nan_to_num_(nan=0.0).sum(dim=-1)
    return Choice(tokens_A, logprobs_BV[rows_A, tokens_A], entropy_B[rows_A])
