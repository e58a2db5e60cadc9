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
        return _from_logits(policy.logits_N(batch), batch.target_N, temperature)
    hidden_ND = policy.hidden_ND(batch)
    head = policy.head
    weight_VD, bias_V = head.weight, head.bias
    size = len(batch.target_N) * weight_VD.shape[0] * 4
    if size <= KEPT_LOGIT_BYTES:
        return _from_logits(_head(hidden_ND, weight_VD, bias_V), batch.target_N, temperature)
    parts = [
        checkpoint(_chunk, hidden, weight_VD, bias_V, target, temperature, use_reentrant=False)
        for hidden, target in zip(
            torch.split(hidden_ND, CHUNK_TOKENS),
            torch.split(batch.target_N, CHUNK_TOKENS),
            strict=True,
        )
    ]
    return TokenLogprobs(*(torch.cat(column) for column in zip(*parts, strict=True)))


def _chunk(
    hidden_ND: torch.Tensor,
    weight_VD: torch.Tensor,
    bias_V: torch.Tensor | None,
    target_N: torch.Tensor,
    temperature: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """One chunk, as a tuple that `checkpoint` can carry."""
    found = _from_logits(_head(hidden_ND, weight_VD, bias_V), target_N, temperature)
    return found.logprobs_N, found.hit_N


def _head(
    hidden_ND: torch.Tensor, weight_VD: torch.Tensor, bias_V: torch.Tensor | None
) -> torch.Tensor:
    """Logits in float32, whatever autocast says."""
    with torch.autocast(hidden_ND.device.type, enabled=False):
        return functional.linear(
            hidden_ND.float(), weight_VD.float(), None if bias_V is None else bias_V.float()
        )


def _from_logits(
    logits_NV: torch.Tensor, target_N: torch.Tensor, temperature: float
) -> TokenLogprobs:
    """Log-probability with gradient; hits without."""
    logits_NV = logits_NV.float() / temperature if temperature != 1.0 else logits_NV.float()
    logprobs_N: torch.Tensor = _TargetLogprob.apply(logits_NV, target_N)  # type: ignore[no-untyped-call]
    with torch.no_grad():
        chosen_N = logits_NV.gather(1, target_N[:, None])[:, 0]
        hit_N = chosen_N >= logits_NV.amax(dim=1)
    return TokenLogprobs(logprobs_N, hit_N)


class _TargetLogprob(torch.autograd.Function):
    """log softmax(logits)[target], whose backward touches the logits once.

    d logprob_n / d logits_nv = [v = target_n] - softmax(logits_n)_v. Autograd's own chain of
    gather and logsumexp would write three more arrays of N V numbers.
    """

    @staticmethod
    def forward(ctx: Any, logits_NV: torch.Tensor, target_N: torch.Tensor) -> torch.Tensor:
        """Shapes: (N, V), (N,) -> (N,)."""
        total_N = logits_NV.logsumexp(dim=1)
        ctx.save_for_backward(logits_NV, target_N, total_N)
        return logits_NV.gather(1, target_N[:, None])[:, 0] - total_N

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor, None]:
        """Shapes: (N,) -> (N, V)."""
        logits_NV, target_N, total_N = ctx.saved_tensors
        grad_N1 = grads[0][:, None]
        grad_NV = (logits_NV - total_N[:, None]).exp_().mul_(-grad_N1)
        grad_NV.scatter_add_(1, target_N[:, None], grad_N1)
        return grad_NV, None
