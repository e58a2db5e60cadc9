"""Rows, masks and micro-batches."""

from __future__ import annotations

import torch

from tests.training_core.models.policies import make_group, make_sequences
from training_core.models.packing import (
    Row,
    TokenSequence,
    block_mask,
    build_batch,
    plan_micro_batches,
    plan_rows,
)


def test_one_group_becomes_one_row() -> None:
    """Prompt 7, completions 5, 1 and 9: the last token of each is no input."""
    rows = plan_rows(make_group(7, [5, 1, 9]), share=True)
    assert rows == [Row((0, 1, 2), 7 + 4 + 0 + 8)]


def test_rows_without_sharing() -> None:
    rows = plan_rows(make_group(7, [5, 1]), share=False)
    assert rows == [Row((0,), 11), Row((1,), 7)]


def test_groups_that_are_interleaved_share_by_prompt() -> None:
    a, b = make_group(4, [2, 2]), make_group(6, [3, 3])
    rows = plan_rows([a[0], b[0], a[1], b[1]], share=True)
    assert rows == [Row((0, 2), 6), Row((1, 3), 10)]


def test_a_full_row_is_followed_by_another() -> None:
    rows = plan_rows(make_group(10, [6, 6, 6, 6]), share=True, row_tokens=20)
    assert rows == [Row((0, 1), 20), Row((2, 3), 20)]


def test_micro_batches_stay_within_the_budget_padding_included() -> None:
    rows = [Row((index,), tokens) for index, tokens in enumerate([9, 3, 30, 4, 10])]
    batches = plan_micro_batches(rows, budget_tokens=20)
    assert [[row.tokens for row in batch] for batch in batches] == [[3, 4], [9, 10], [30]]
    assert sorted(row.members[0] for batch in batches for row in batch) == [0, 1, 2, 3, 4]


def test_layout_of_a_shared_row() -> None:
    sequences = [TokenSequence((10, 11), (20, 21, 22)), TokenSequence((10, 11), (30, 31))]
    batch = build_batch(sequences, plan_rows(sequences, share=True), pad_id=0)
    assert batch.input_ids_RT.tolist() == [[10, 11, 20, 21, 30]]
    assert batch.position_ids_RT.tolist() == [[0, 1, 2, 3, 2]]
    assert batch.target_N.tolist() == [20, 21, 22, 30, 31]
    assert batch.source_N.tolist() == [1, 2, 3, 1, 4]
    assert batch.members == (0, 1)


def test_who_may_look_where() -> None:
    """Prompt of 2, completions of 2 and 1, one place of padding; query down, key across."""
    mask = block_mask(torch.tensor([[0, 0, 1, 1, 2, -1]]))
    assert mask.shape == (1, 1, 6, 6)
    assert mask[0, 0].int().tolist() == [
        [1, 0, 0, 0, 0, 0],
        [1, 1, 0, 0, 0, 0],
        [1, 1, 1, 0, 0, 0],
        [1, 1, 1, 1, 0, 0],
        [1, 1, 0, 0, 1, 0],
        [1, 1, 0, 0, 0, 1],
    ]


def test_rows_that_share_nothing_need_no_mask() -> None:
    sequences = make_sequences((3, 2), (5, 4))
    batch = build_batch(sequences, plan_rows(sequences, share=True), pad_id=0)
    assert batch.mask_R1TT is None
    assert batch.input_ids_RT.shape == (2, 8)
    assert batch.input_ids_RT[0, 4:].tolist() == [0] * 4


def test_a_completion_without_tokens_has_nothing_to_predict() -> None:
    sequences = [TokenSequence((10, 11), ()), TokenSequence((10, 11), (30,))]
    batch = build_batch(sequences, plan_rows(sequences, share=True), pad_id=0)
    assert batch.target_N.tolist() == [30]
    assert batch.source_N.tolist() == [1]
    assert batch.input_ids_RT.tolist() == [[10, 11]]
