"""The decode batch as a tree: completions share a row for as long as they are equal.

Called by `rollouts.engine` after each token. The G completions of a prompt begin as one row; where
they choose different tokens the row forks: one child stays, the others get copies of its keys and
values. Exact: equal beginnings have equal keys and values. A policy that is sure of an opening tag
decodes it once for a whole group.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

COMPACT_BELOW_FRAC = 0.85
"""Dead rows leave once fewer than this share of the rows is alive: moving rows costs too."""


@dataclass(frozen=True)
class RowPlan:
    """The rows after a token. B row, A unfinished completion."""

    rows_A: torch.Tensor
    """Row of each completion."""
    tokens_B: torch.Tensor
    """Token that each row reads; any one where the row is dead."""
    parents_B: torch.Tensor
    """Row whose keys and values each row takes over."""
    moves: bool
    """Whether any row takes over another's, or leaves."""


def plan_rows(rows_A: torch.Tensor, tokens_A: torch.Tensor, *, rows: int) -> RowPlan:
    """Rows for completions that have chosen `tokens_A` in `rows_A`, of `rows` rows so far.

    A row's first child stays where it is; other children take dead rows, then new ones. All on the
    processor.
    """
    pairs_A2 = torch.stack([rows_A, tokens_A], dim=1)
    children_C2, child_of_A = pairs_A2.unique(dim=0, return_inverse=True)  # type: ignore[no-untyped-call]
    parents_C, tokens_C = children_C2.unbind(dim=1)
    stays_C = torch.ones_like(parents_C, dtype=torch.bool)
    stays_C[1:] = parents_C[1:] != parents_C[:-1]
    count = max(rows, len(parents_C))
    is_free_B = torch.ones(count, dtype=torch.bool)
    is_free_B[parents_C] = False
    place_C = parents_C.clone()
    moving = int((~stays_C).sum())
    place_C[~stays_C] = is_free_B.nonzero()[:moving, 0]
    parents_B = torch.arange(count)
    parents_B[place_C] = parents_C
    tokens_B = torch.zeros(count, dtype=torch.long)
    tokens_B[place_C] = tokens_C
    if len(parents_C) > COMPACT_BELOW_FRAC * count:
        return RowPlan(place_C[child_of_A], tokens_B, parents_B, moves=moving > 0)
    keep, row_of_C = place_C.sort()
    return RowPlan(row_of_C.argsort()[child_of_A], tokens_B[keep], parents_B[keep], moves=True)
