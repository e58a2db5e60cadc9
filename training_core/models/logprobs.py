"""Log-probabilities of completion tokens under the policy, with their gradient.

Called by `algorithms.update`. Hidden states of all positions are computed in the run's type, but
logits only where a completion token is predicted, in chunks, and always in float32: a bfloat16
logit near 20 is rounded to eighths, which alone makes sampler and trainer disagree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from training_core.models.packing import PackedBatch
from training_core.models.policy import Policy

CHUNK_TOKENS = 1024
"""Tokens whose logits exist at once when they are computed in chunks."""
KEPT_LOGIT_BYTES = 1 << 29
"""Logits are kept for the backward pass up to this size, recomputed chunk by chunk beyond it."""


@dataclass(frozen=True)
class TokenLogprobs:
    """Per completion token of a packed batch."""

    logprobs_N: torch.Tensor
    """Log-probability of the token, in nats, at the sampling temperature; has a gradient."""
    hit_N: torch.Tensor
    """Whether it is the likeliest token."""


def completion_logprobs(
    policy: Policy, batch: PackedBatch, *, temperature: float = 1.0
) -> TokenLogprobs:
    """log softmax(logits / temperature)[token], for each completion token.

    Shapes: batch in (R, T) -> all results (N,), float32.
    """
    if not policy.facts.plain_head:
        logits_SV = policy.logits_SV(batch)
        return _from_logits(logits_SV, batch.source_of_N, batch.target_N, temperature)
    hidden_SD = policy.hidden_SD(batch)
    head = policy.head
    weight_VD, bias_V = head.weight, head.bias
    if len(hidden_SD) * weight_VD.shape[0] * 4 <= KEPT_LOGIT_BYTES:
        logits_SV = _head(hidden_SD, weight_VD, bias_V)
        return _from_logits(logits_SV, batch.source_of_N, batch.target_N, temperature)
    parts, order = [], []
    for start in range(0, len(hidden_SD), CHUNK_TOKENS):
        hidden = hidden_SD[start : start + CHUNK_TOKENS]
        source_of_N = batch.source_of_N - start
        chosen = ((source_of_N >= 0) & (source_of_N < len(hidden))).nonzero()[:, 0]
        source, target = source_of_N[chosen], batch.target_N[chosen]
        parts.append(
            checkpoint(
                _chunk, hidden, weight_VD, bias_V, source, target, temperature, use_reentrant=False
            )
        )
        order.append(chosen)
    back = torch.cat(order).argsort()
    return TokenLogprobs(*(torch.cat(column)[back] for column in zip(*parts, strict=True)))


def _chunk(
    hidden_SD: torch.Tensor,
    weight_VD: torch.Tensor,
    bias_V: torch.Tensor | None,
    source_of_N: torch.Tensor,
    target_N: torch.Tensor,
    temperature: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """One chunk, as a tuple that `checkpoint` can carry."""
    logits_SV = _head(hidden_SD, weight_VD, bias_V)
    found = _from_logits(logits_SV, source_of_N, target_N, temperature)
    return found.logprobs_N, found.hit_N


def _head(
    hidden_SD: torch.Tensor, weight_VD: torch.Tensor, bias_V: torch.Tensor | None
) -> torch.Tensor:
    """Logits in float32, whatever autocast says."""
    with torch.autocast(hidden_SD.device.type, enabled=False):
        return functional.linear(
            hidden_SD.float(), weight_VD.float(), None if bias_V is None else bias_V.float()
        )


def _from_logits(
    logits_SV: torch.Tensor,
    source_of_N: torch.Tensor,
    target_N: torch.Tensor,
    temperature: float,
) -> TokenLogprobs:
    """Log-probability with gradient; hits without."""
    logits_SV = logits_SV.float() / temperature if temperature != 1.0 else logits_SV.float()
    logprobs_N: torch.Tensor = _TargetLogprob.apply(logits_SV, source_of_N, target_N)  # type: ignore[no-untyped-call]
    with torch.no_grad():
        hit_N = logits_SV[source_of_N, target_N] >= logits_SV.amax(dim=1)[source_of_N]
    return TokenLogprobs(logprobs_N, hit_N)


class _TargetLogprob(torch.autograd.Function):
    """log softmax(logits)[target], whose backward touches the logits once.

    With s the place that predicts token n: d logprob_n / d logits_sv = [v = target_n] -
    softmax(logits_s)_v. Autograd's own chain of gather and logsumexp would write three more arrays
    of S V numbers.
    """

    @staticmethod
    def forward(
        ctx: Any, logits_SV: torch.Tensor, source_of_N: torch.Tensor, target_N: torch.Tensor
    ) -> torch.Tensor:
        """Shapes: (S, V), (N,), (N,) -> (N,)."""
        total_S = logits_SV.logsumexp(dim=1)
        ctx.save_for_backward(logits_SV, source_of_N, target_N, total_S)
        return logits_SV[source_of_N, target_N] - total_S[source_of_N]

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        """Shapes: (N,) -> (S, V)."""
        logits_SV, source_of_N, target_N, total_S = ctx.saved_tensors
        grad_N = grads[0]
        grad_S = torch.zeros_like(total_S).index_add_(0, source_of_N, grad_N)
        grad_SV = (logits_SV - total_S[:, None]).exp_().mul_(-grad_S[:, None])
        grad_SV.index_put_((source_of_N, target_N), grad_N, accumulate=True)
        return grad_SV, None, None
