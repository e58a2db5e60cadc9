"""Keys and values of a decode batch in buffers that grow by blocks instead of by one token.

Used by `rollouts.engine`. `DynamicLayer` copies the whole cache for each token; this layer writes
the token in place and copies once in `BLOCK_TOKENS` tokens.
"""

from __future__ import annotations

from typing import Any

import torch
from transformers.cache_utils import DynamicCache, DynamicLayer

BLOCK_TOKENS = 64


class GrowingLayer(DynamicLayer):  # type: ignore[no-untyped-call]
    """Cache of one attention layer; `keys` and `values` are views of the filled part."""

    _key_buffer: torch.Tensor
    _value_buffer: torch.Tensor
    _length: int = 0

    def update(
        self,
        key_states: torch.Tensor,
        value_states: torch.Tensor,
        *_: Any,
        **__: Any,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Append the new positions (B, heads, T, D) and return all positions so far."""
        start, end = self._length, self._length + key_states.shape[-2]
        if start == 0:
            self._key_buffer = _room(key_states, end)
            self._value_buffer = _room(value_states, end)
            self.device, self.is_initialized = key_states.device, True
        elif end > self._key_buffer.shape[-2]:
            self._key_buffer = _grown(self._key_buffer, start, end)
            self._value_buffer = _grown(self._value_buffer, start, end)
        self._key_buffer[..., start:end, :] = key_states
        self._value_buffer[..., start:end, :] = value_states
        return self._show(end)

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        """Keep the rows at `indices`, in that order; an index may come more than once."""
        if self._length:
            self._key_buffer = self._key_buffer[indices]
            self._value_buffer = self._value_buffer[indices]
            self._show(self._length)

    def _show(self, end: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Make the first `end` positions the content of the cache."""
        self._length = end
        keys, values = self._key_buffer[..., :end, :], self._value_buffer[..., :end, :]
        self.keys, self.values = keys, values
        return keys, values


def make_cache(config: Any) -> DynamicCache:
    """An empty cache for a model; layers that are no plain attention keep their own kind."""
    cache = DynamicCache(config=config)
    cache.layers = [
        GrowingLayer() if type(layer) is DynamicLayer else layer  # type: ignore[no-untyped-call]
        for layer in cache.layers
    ]
    return cache


def _room(states: torch.Tensor, positions: int) -> torch.Tensor:
    """An uninitialised buffer like `states` for that many positions, rounded up to a block."""
    capacity = -(-positions // BLOCK_TOKENS) * BLOCK_TOKENS
    shape = (*states.shape[:-2], capacity, states.shape[-1])
    return torch.empty(shape, dtype=states.dtype, device=states.device)


def _grown(buffer: torch.Tensor, filled: int, positions: int) -> torch.Tensor:
    """A longer buffer with the filled positions of the old one."""
    grown = _room(buffer, positions)
    grown[..., :filled, :] = buffer[..., :filled, :]
    return grown
