"""Two questions that are asked of every model by trying: is its head plain, can rows be shared?

Called by `models.loading`. Names of architectures would be a list that is always out of date; a
forward pass of a dozen tokens answers for any model, and a no only costs speed.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from training_core.models.packing import TokenSequence, build_batch, plan_rows

_TOLERANCE = 1e-3
_PROMPT, _FIRST, _SECOND = (5, 7, 11, 13), (17, 19, 23), (29, 31, 37, 41)


@torch.no_grad()
def has_plain_head(model: Any) -> bool:
    """Whether logits equal hidden states times the output matrix: no scaling, no soft cap."""
    head = model.get_output_embeddings()
    if head is None or not hasattr(head, "weight"):
        return False
    ids = torch.tensor([_PROMPT], device=model.device)
    expected = model(input_ids=ids, use_cache=False).logits.float()
    hidden = model.base_model(input_ids=ids, use_cache=False).last_hidden_state
    found = functional.linear(hidden, head.weight, getattr(head, "bias", None)).float()
    return _is_close(found, expected)


@torch.no_grad()
def can_share_prompts(model: Any) -> bool:
    """Whether two completions in one row under a block mask get the hidden states of two rows."""
    sequences = [TokenSequence(_PROMPT, _FIRST), TokenSequence(_PROMPT, _SECOND)]
    try:
        shared, alone = (_hidden(model, sequences, share=share) for share in (True, False))
    except (RuntimeError, ValueError, TypeError, NotImplementedError):
        return False
    return _is_close(shared, alone)


def _hidden(model: Any, sequences: list[TokenSequence], *, share: bool) -> torch.Tensor:
    batch = build_batch(sequences, plan_rows(sequences, share=share), pad_id=0).to(model.device)
    hidden: torch.Tensor = model.base_model(
        input_ids=batch.input_ids_RT,
        position_ids=batch.position_ids_RT,
        attention_mask=batch.mask_R1TT,
        use_cache=False,
    ).last_hidden_state
    return hidden.flatten(0, 1)[batch.source_S][batch.source_of_N].float()


def _is_close(found: torch.Tensor, expected: torch.Tensor) -> bool:
    """Equal up to rounding, relative to the largest value."""
    scale = float(expected.abs().max())
    return bool((found - expected).abs().max() <= _TOLERANCE * max(scale, 1e-6))
