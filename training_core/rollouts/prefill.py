"""Reading the prompts of a decode batch; what all of them begin with is read once.

Called by `rollouts.engine`. The prompts of a domain share their chat frame and system prompt, which
is often most of their tokens. Exact up to rounding: a token's keys and values depend on nothing
behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from transformers.cache_utils import DynamicCache

from training_core.models.packing import common_tokens
from training_core.models.policy import Policy
from training_core.rollouts.kv_cache import GrowingLayer, make_cache
from training_core.tensors import left_pad

SHORTEST_PREFIX_TOKENS = 8
"""A shorter common beginning is not worth a forward pass of its own."""


@dataclass(frozen=True)
class Prefill:
    """Prompts that have been read. P prompt, T column of the cache, V vocabulary."""

    cache: DynamicCache
    """Keys and values of all columns, a row for each prompt."""
    logits_PV: torch.Tensor
    """Of the token that comes next."""
    mask_PT: torch.Tensor
    """1 where a column holds a token of the prompt, 0 where it is padding; on the processor."""


def read_prompts(policy: Policy, prompts: Sequence[tuple[int, ...]], *, room_rows: int) -> Prefill:
    """Keys, values and next-token logits of each prompt under the policy's sampler.

    The cache gets room for that many rows.
    """
    cache = make_cache(policy.model.config, room_rows=room_rows)
    shared = _shareable_tokens(cache, prompts)
    if shared:
        prefix = torch.tensor([prompts[0][:shared]], device=policy.device)
        _read(policy, cache, prefix, torch.ones_like(prefix), first_column=0)
        cache.batch_select_indices(torch.zeros(len(prompts), dtype=torch.long).to(policy.device))
    input_ids_PT, mask_PT = left_pad([prompt[shared:] for prompt in prompts], policy.facts.pad_id)
    before_PT = torch.ones(len(prompts), shared, dtype=mask_PT.dtype)
    mask_PT = torch.cat([before_PT, mask_PT], dim=1)
    logits_PV = _read(
        policy, cache, input_ids_PT.to(policy.device), mask_PT.to(policy.device), shared
    )
    return Prefill(cache, logits_PV, mask_PT)


def common_prefix(rows: Sequence[tuple[int, ...]]) -> int:
    """How many first items all rows have in common."""
    # Whatever the least and the greatest share, all rows between them share.
    return common_tokens(min(rows), max(rows))


def _shareable_tokens(cache: DynamicCache, prompts: Sequence[tuple[int, ...]]) -> int:
    """Tokens to read once for all prompts; 0 when that gains nothing or would not be exact.

    A layer with a sliding window counts columns, padding included, and padding would lie between
    the prefix and the rest.
    """
    if len(prompts) < 2 or not all(type(layer) is GrowingLayer for layer in cache.layers):
        return 0
    # Each prompt keeps a token of its own to read: the one whose logits are wanted.
    shared = min(common_prefix(prompts), min(map(len, prompts)) - 1)
    return shared if shared >= SHORTEST_PREFIX_TOKENS else 0


def _read(
    policy: Policy,
    cache: DynamicCache,
    input_ids_PT: torch.Tensor,
    mask_PT: torch.Tensor,
    first_column: int,
) -> torch.Tensor:
    """Append columns to the cache; logits at the last of them. The mask covers all columns."""
    position_ids_PT = (mask_PT.cumsum(1) - 1).clamp_(min=0)[:, first_column:]
    return policy.sampler_logits_BV(
        input_ids=input_ids_PT,
        attention_mask=mask_PT,
        position_ids=position_ids_PT,
        cache=cache,
        use_cache=True,
    )
