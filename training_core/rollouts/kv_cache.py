"""Keys and values of a decode batch in buffers with room for more positions and more rows.

Used by `rollouts.engine`. `DynamicLayer` copies the whole cache for each token and for each change
of its rows; this layer writes the token in place, copies once in `BLOCK_TOKENS` tokens, and moves
only rows that change.
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
    _rows: int = 0

    def __init__(self, room_rows: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._room_rows = room_rows

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
            self._rows = len(key_states)
            self._key_buffer = self._room(key_states, self._rows, end)
            self._value_buffer = self._room(value_states, self._rows, end)
            self.device, self.is_initialized = key_states.device, True
        elif end > self._key_buffer.shape[-2]:
            self._key_buffer = self._grown(self._key_buffer, self._rows, end)
            self._value_buffer = self._grown(self._value_buffer, self._rows, end)
        self._key_buffer[: self._rows, :, start:end] = key_states
        self._value_buffer[: self._rows, :, start:end] = value_states
        return self._show(end)

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        """Make row r what row `indices[r]` was; an index may come more than once."""
        if not self._length:
            return
        if len(indices) > len(self._key_buffer):
            self._key_buffer = self._grown(self._key_buffer, len(indices), self._length)
            self._value_buffer = self._grown(self._value_buffer, len(indices), self._length)
        self._rows = len(indices)
        moved = (indices != torch.arange(len(indices), device=indices.device)).nonzero()[:, 0]
        if len(moved):
            for buffer in (self._key_buffer, self._value_buffer):
                filled = buffer[:, :, : self._length]
                filled[moved] = filled[indices[moved]]  # the right side is a copy
        self._show(self._length)

    def _show(self, end: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Make the first `end` positions the content of the cache."""
        self._length = end
        keys = self._key_buffer[: self._rows, :, :end]
        values = self._value_buffer[: self._rows, :, :end]
        self.keys, self.values = keys, values
        return keys, values

    def _room(self, states: torch.Tensor, rows: int, positions: int) -> torch.Tensor:
        """An uninitialised buffer like `states`; positions are rounded up to a block."""
        capacity = -(-positions // BLOCK_TOKENS) * BLOCK_TOKENS
        shape = (max(rows, self._room_rows), states.shape[1], capacity, states.shape[3])
        return torch.empty(shape, dtype=states.dtype, device=states.device)

    def _grown(self, buffer: torch.Tensor, rows: int, positions: int) -> torch.Tensor:
        """A larger buffer with the filled part of the old one."""
        grown = self._room(buffer, rows, positions)
        filled = buffer[: self._rows, :, : self._length]
        grown[: self._rows, :, : self._length] = filled
        return grown


def make_cache(config: Any, *, room_rows: int = 1) -> DynamicCache:
    """An empty cache for a model, with room for that many rows before a copy is needed.

    Layers that are no plain attention keep their own kind.
    """
    cache = DynamicCache(config=config)
    cache.layers = [
        GrowingLayer(room_rows) if type(layer) is DynamicLayer else layer for layer in cache.layers
    ]
    return cache
