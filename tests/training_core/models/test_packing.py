"""Rows, trees, masks and micro-batches."""

from __future__ import annotations

from tests.training_core.models.policies import make_group, make_sequences
from training_core.models.packing import (
    PackedBatch,
    Row,
    TokenSequence,
    build_batch,
    join_rows,
    plan_micro_batches,
    plan_rows,
)


def group(prompt: str, *completions: str) -> list[TokenSequence]:
    """A letter is a token."""
    ids = [tuple(map(ord, text)) for text in (prompt, *completions)]
    return [TokenSequence(ids[0], one) for one in ids[1:]]


def text(batch: PackedBatch) -> list[str]:
    """The rows, padding as spaces."""
    return ["".join(map(chr, row)) for row in batch.input_ids_RT.tolist()]


def predicted(batch: PackedBatch) -> str:
    """For each completion token the place that predicts it and the token itself."""
    places = batch.source_S[batch.source_of_N].tolist()
    return " ".join(f"{p}{chr(t)}" for p, t in zip(places, batch.target_N.tolist(), strict=True))


def test_one_group_becomes_one_row() -> None:
    """The last token of each is no input; equal beginnings count once."""
    sequences = group("prompt", "fair", "far", "f", "zoo", "fair")
    (row,) = plan_rows(sequences, share=True)
    assert row == Row((2, 0, 4, 1, 3), len("prompt") + len("fai") + len("zo"))


def test_rows_without_sharing() -> None:
    rows = plan_rows(make_group(7, [5, 1]), share=False)
    assert rows == [Row((0,), 11), Row((1,), 7)]


def test_groups_that_are_interleaved_share_by_prompt() -> None:
    one, other = group("four", "ab", "cd"), group("sixsix", "efg", "hij")
    rows = plan_rows([other[0], one[0], other[1], one[1]], share=True)
    assert rows == [Row((1, 3), 4 + 2), Row((0, 2), 6 + 4)]


def test_a_full_row_is_followed_by_another() -> None:
    sequences = group("tentententen"[:10], "abcdef", "bcdefg", "cdefgh", "defghi")
    rows = plan_rows(sequences, share=True, row_tokens=20)
    assert rows == [Row((0, 1), 20), Row((2, 3), 20)]


def test_prompts_that_begin_alike_join() -> None:
    sequences = group("system: one", "a1", "b1") + group("system: two", "a2") + group("other", "a")
    rows = plan_rows(sequences, share=True)
    assert [row.tokens for row in rows] == [5, 13, 12]
    assert join_rows(sequences, rows) == [Row((3,), 5), Row((0, 1, 2), 13 + 12 - len("system: "))]


def test_joined_rows_are_few_and_alike() -> None:
    """Six rows of 18 tokens, 10 in common: 58 tokens in one row, or twice 10 + 24."""
    sequences = [one for letter in "abcdef" for one in group("0123456789" + 7 * letter, "xy")]
    rows = plan_rows(sequences, share=True)
    assert [row.tokens for row in join_rows(sequences, rows, row_tokens=58)] == [58]
    assert [row.tokens for row in join_rows(sequences, rows, row_tokens=57)] == [34, 34]
    assert [row.tokens for row in join_rows(sequences, rows, row_tokens=25)] == [18] * 6
    assert [row.tokens for row in join_rows(sequences, rows, row_tokens=1)] == [18] * 6


def test_micro_batches_stay_within_the_budget_padding_included() -> None:
    rows = [Row((index,), tokens) for index, tokens in enumerate([9, 3, 30, 4, 10])]
    batches = plan_micro_batches(rows, budget_tokens=20)
    assert [[row.tokens for row in batch] for batch in batches] == [[3, 4], [9, 10], [30]]
    assert sorted(row.members[0] for batch in batches for row in batch) == [0, 1, 2, 3, 4]


def test_layout_of_a_shared_row() -> None:
    sequences = group("pq", "abc", "abd", "xy", "abc")
    batch = build_batch(sequences, plan_rows(sequences, share=True), pad_id=32)
    assert text(batch) == ["pqabx"]
    assert batch.position_ids_RT.tolist() == [[0, 1, 2, 3, 2]]
    assert batch.members == (0, 3, 1, 2)
    assert predicted(batch) == "1a 2b 3c 1a 2b 3c 1a 2b 3d 1x 4y"
    assert batch.source_S.tolist() == [1, 2, 3, 4]


def test_who_may_look_where() -> None:
    """Two prompts behind one beginning, and padding; query down, key across."""
    sequences = group("sp", "ab", "cd") + group("sq", "ef")
    alone = group("12345678", "9")
    joined = [Row((0, 1, 2), 6), Row((3,), 8)]
    batch = build_batch(sequences + alone, joined, pad_id=32)
    assert text(batch) == ["spacqe  ", "12345678"]
    assert predicted(batch) == "1a 2b 1c 3d 4e 5f 159"
    assert batch.mask_R1TT is not None
    assert batch.mask_R1TT.shape == (2, 1, 8, 8)
    assert batch.mask_R1TT[0, 0].int().tolist() == [
        [1, 0, 0, 0, 0, 0, 0, 0],
        [1, 1, 0, 0, 0, 0, 0, 0],
        [1, 1, 1, 0, 0, 0, 0, 0],
        [1, 1, 0, 1, 0, 0, 0, 0],
        [1, 0, 0, 0, 1, 0, 0, 0],
        [1, 0, 0, 0, 1, 1, 0, 0],
        [0, 0, 0, 0, 0, 0, 1, 0],
        [0, 0, 0, 0, 0, 0, 0, 1],
    ]
    assert batch.mask_R1TT[1, 0].equal(batch.mask_R1TT.new_ones(8, 8).tril())


def test_rows_that_do_not_fork_need_no_mask() -> None:
    sequences = [*make_sequences((3, 2), (5, 4)), *group("pqr", "ab", "abc", "abcd")]
    batch = build_batch(sequences, plan_rows(sequences, share=True), pad_id=0)
    assert batch.mask_R1TT is None
    assert batch.input_ids_RT.shape == (3, 8)
    assert sum(row[4:] == [0] * 4 for row in batch.input_ids_RT.tolist()) == 1


def test_a_completion_without_tokens_has_nothing_to_predict() -> None:
    sequences = group("pq", "", "a")
    batch = build_batch(sequences, plan_rows(sequences, share=True), pad_id=32)
    assert predicted(batch) == "1a"
    assert text(batch) == ["pq"]


def test_a_prompt_that_begins_another() -> None:
    """The completion of one is the prompt of the other: the places are the same."""
    sequences = group("12345678", "ab", "cd") + group("12345678a", "xy")
    rows = join_rows(sequences, plan_rows(sequences, share=True))
    batch = build_batch(sequences, rows, pad_id=32)
    assert text(batch) == ["12345678acax"]
    assert predicted(batch) == "7a 8b 7c 9d 10x 11y"
