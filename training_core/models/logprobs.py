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
    entropy_N: torch.Tensor | None
    """Entropy of the distribution that the token comes from, in nats, with gradient; None where
    nobody asked for it."""


@dataclass(frozen=True)
class HeadSettings:
    """What is made of logits."""

    temperature: float = 1.0
    with_entropy: bool = False
    """Whether the entropy is wanted; it costs another pass over the logits."""


PLAIN = HeadSettings()


def completion_logprobs(
    policy: Policy, batch: PackedBatch, settings: HeadSettings = PLAIN
) -> TokenLogprobs:
    """log softmax(logits / temperature)[token], for each completion token.

    Shapes: batch in (R, T) -> all results (N,), float32.
    """
    if not policy.facts.plain_head:
        logits_SV = policy.logits_SV(batch)
        return _from_logits(logits_SV, batch.source_of_N, batch.target_N, settings)
    hidden_SD = policy.hidden_SD(batch)
    head = policy.head
    weight_VD, bias_V = head.weight, head.bias
    if len(hidden_SD) * weight_VD.shape[0] * 4 <= KEPT_LOGIT_BYTES:
        logits_SV = _head(hidden_SD, weight_VD, bias_V)
        return _from_logits(logits_SV, batch.source_of_N, batch.target_N, settings)
    parts, order = [], []
    for start in range(0, len(hidden_SD), CHUNK_TOKENS):
        hidden = hidden_SD[start : start + CHUNK_TOKENS]
        source_of_N = batch.source_of_N - start
        chosen = ((source_of_N >= 0) & (source_of_N < len(hidden))).nonzero()[:, 0]
        source, target = source_of_N[chosen], batch.target_N[chosen]
        parts.append(
            checkpoint(
                _chunk, hidden, weight_VD, bias_V, source, target, settings, use_reentrant=False
            )
        )
        order.append(chosen)
    back = torch.cat(order).argsort()
    logprobs_N, hit_N, entropy_N = (torch.cat(column) for column in zip(*parts, strict=True))
    return TokenLogprobs(
        logprobs_N[back], hit_N[back], entropy_N[back] if settings.with_entropy else None
    )


def _chunk(
    hidden_SD: torch.Tensor,
    weight_VD: torch.Tensor,
    bias_V: torch.Tensor | None,
    source_of_N: torch.Tensor,
    target_N: torch.Tensor,
    settings: HeadSettings,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """One chunk, as a tuple that `checkpoint` can carry."""
    logits_SV = _head(hidden_SD, weight_VD, bias_V)
    found = _from_logits(logits_SV, source_of_N, target_N, settings)
    nothing = found.logprobs_N.new_zeros(0)
    return found.logprobs_N, found.hit_N, nothing if found.entropy_N is None else found.entropy_N


def _head(
    hidden_SD: torch.Tensor, weight_VD: torch.Tensor, bias_V: torch.Tensor | None
) -> torch.Tensor:
    """Logits in float32 at least, whatever autocast says."""
    dtype = torch.promote_types(hidden_SD.dtype, torch.float32)
    with torch.autocast(hidden_SD.device.type, enabled=False):
        return functional.linear(
            hidden_SD.to(dtype), weight_VD.to(dtype), None if bias_V is None else bias_V.to(dtype)
        )


def _from_logits(
    logits_SV: torch.Tensor,
    source_of_N: torch.Tensor,
    target_N: torch.Tensor,
    settings: HeadSettings,
) -> TokenLogprobs:
    """Log-probability with gradient; hits without."""
    logits_SV = logits_SV.to(torch.promote_types(logits_SV.dtype, torch.float32))
    if settings.temperature != 1.0:
        logits_SV = logits_SV / settings.temperature
    logprobs_N, entropy_N = _TargetLogprob.apply(  # type: ignore[no-untyped-call]
        logits_SV, source_of_N, target_N, settings.with_entropy
    )
    with torch.no_grad():
        hit_N = logits_SV[source_of_N, target_N] >= logits_SV.amax(dim=1)[source_of_N]
    return TokenLogprobs(logprobs_N, hit_N, entropy_N)


class _TargetLogprob(torch.autograd.Function):
    """log softmax(logits)[target] and the entropy, whose backward touches the logits once.

    With s the place that predicts token n and p = softmax(logits_s): d logprob_n / d logits_sv =
    [v = target_n] - p_v, and d H_s / d logits_sv = -p_v (log p_v + H_s). Autograd's own chain of
    gather and logsumexp would write three more arrays of S V numbers.
    """

    @staticmethod
    def forward(
        ctx: Any,
        logits_SV: torch.Tensor,
        source_of_N: torch.Tensor,
        target_N: torch.Tensor,
        with_entropy: bool,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Shapes: (S, V), (N,), (N,) -> (N,), (N,)."""
        total_S = logits_SV.logsumexp(dim=1)
        entropy_S = total_S - _mean_logit(logits_SV, total_S) if with_entropy else None
        ctx.save_for_backward(logits_SV, source_of_N, target_N, total_S, entropy_S)
        logprobs_N = logits_SV[source_of_N, target_N] - total_S[source_of_N]
        return logprobs_N, None if entropy_S is None else entropy_S[source_of_N]

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor, None, None, None]:
        """Shapes: (N,), (N,) -> (S, V)."""
        logits_SV, source_of_N, target_N, total_S, entropy_S = ctx.saved_tensors
        grad_N = grads[0]
        grad_S = torch.zeros_like(total_S).index_add_(0, source_of_N, grad_N)
        logprobs_SV = logits_SV - total_S[:, None]
        if entropy_S is None:
            grad_SV = logprobs_SV.exp_().mul_(-grad_S[:, None])
        else:
            slope_S = torch.zeros_like(total_S).index_add_(0, source_of_N, grads[1])
            factor_SV = (logprobs_SV + entropy_S[:, None]).mul_(slope_S[:, None])
            factor_SV.add_(grad_S[:, None]).neg_()
            grad_SV = logprobs_SV.exp_().mul_(factor_SV)
        grad_SV.index_put_((source_of_N, target_N), grad_N, accumulate=True)
        return grad_SV, None, None, None


def _mean_logit(logits_SV: torch.Tensor, total_S: torch.Tensor) -> torch.Tensor:
    """Sum of p_v logit_v. Shapes: (S, V), (S,) -> (S,)."""
    return ((logits_SV - total_S[:, None]).exp_() * logits_SV).sum(dim=1)
