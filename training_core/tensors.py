"""Small tensor functions that several parts of the core share."""

from __future__ import annotations

from collections.abc import Sequence

import torch


def left_pad(rows: Sequence[Sequence[int]], pad_id: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids as a rectangle, padded on the left, and its mask.

    Shapes: -> input_ids_BT, mask_BT (both int64). Masks: 1 counts.
    """
    width = max(len(row) for row in rows)
    input_ids_BT = torch.tensor([[pad_id] * (width - len(row)) + list(row) for row in rows])
    mask_BT = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows])
    return input_ids_BT, mask_BT


def masked_sum(values_N: torch.Tensor, mask_N: torch.Tensor) -> torch.Tensor:
    """Sum of the values whose mask is 1; a NaN under a 0 does not count.

    Shapes: values_N, mask_N (N,) -> scalar.
    """
    return torch.where(mask_N > 0, values_N, torch.zeros_like(values_N)).sum()
