"""What is asked of every model: is its head plain, can rows be shared, how far do layers look?

Called by `models.loading`. Names of architectures would be a list that is always out of date; a
forward pass of a dozen tokens answers the first two for any model, and a no only costs speed. The
third cannot be seen in a dozen tokens: the model's own cache says it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional
from transformers.cache_utils import DynamicCache

from training_core.models.packing import TokenSequence, build_batch, plan_rows

_TOLERANCE = 1e-3
_LOUD = 1000.0
"""Logits of this size are bent by any soft cap; those of small or fresh models are not."""
_PROMPT, _FIRST, _SECOND = (5, 7, 11, 13), (17, 19, 23), (29, 31, 37, 41)


@torch.no_grad()
def has_plain_head(model: Any) -> bool:
    """Whether logits equal hidden states times the output matrix: no scaling, no soft cap.

    The head's output is made loud on its way through the model. A model that does not call its head
    as a module hears nothing of that, and counts as one with a head of its own.
    """
    head = model.get_output_embeddings()
    if head is None or not hasattr(head, "weight"):
        return False
    ids = torch.tensor([_PROMPT], device=model.device)
    hidden = model.base_model(input_ids=ids, use_cache=False).last_hidden_state
    found = functional.linear(hidden, head.weight, getattr(head, "bias", None)).float()
    factor = _LOUD / max(float(found.abs().max()), 1e-6)
    handle = head.register_forward_hook(lambda _module, _inputs, output: output * factor)
    try:
        expected = model(input_ids=ids, use_cache=False).logits.float()
    finally:
        handle.remove()
    return _is_close(found * factor, expected)


@torch.no_grad()
def can_share_prompts(model: Any) -> bool:
    """Whether two completions in one row under a block mask get the hidden states of two rows."""
    sequences = [TokenSequence(_PROMPT, _FIRST), TokenSequence(_PROMPT, _SECOND)]
    try:
        shared, alone = (_hidden(model, sequences, share=share) for share in (True, False))
    except (RuntimeError, ValueError, TypeError, NotImplementedError):
        return False
    return _is_close(shared, alone)


def find_window_tokens(config: Any) -> int | None:
    """Tokens that the most short-sighted layer looks at, its own included; None for all of them.

    A sequence of no more tokens than that is read as if there were no window.
    """
    layers: list[Any] = DynamicCache(config=config).layers
    windows = [int(layer.sliding_window) for layer in layers if getattr(layer, "is_sliding", False)]
    return min(windows, default=None)


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
