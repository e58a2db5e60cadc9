"""Token sequences as rows of a rectangular batch, the completions of one prompt sharing it.

Called by `algorithms.update` and `sft`. A group of G completions of one prompt becomes one row
`prompt, completion 1, ..., completion G` under a block mask, so that a step computes P + G R tokens
instead of G (P + R): exact, and several times faster for short completions. Rows that share nothing
are right-padded and need no mask at all, because attention is causal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

SHARED_ROW_TOKENS = 1024
"""Longest row that completions share; attention's square would eat the gain beyond it."""


@dataclass(frozen=True)
class TokenSequence:
    """A prompt and one completion of it, as ids."""

    prompt_ids: tuple[int, ...]
    completion_ids: tuple[int, ...]


@dataclass(frozen=True)
class Row:
    """Sequences that are laid out behind one copy of their prompt."""

    members: tuple[int, ...]
    """Indices of the sequences, in order."""
    tokens: int
    """Length of the row."""


@dataclass(frozen=True)
class PackedBatch:
    """One forward pass. R row, T token, N completion token of the batch, laid end to end."""

    input_ids_RT: torch.Tensor
    """Ids, padded on the right."""
    position_ids_RT: torch.Tensor
    """Position of each token in its own sequence."""
    mask_R1TT: torch.Tensor | None
    """True where a token may look; None for plain causal attention."""
    source_N: torch.Tensor
    """Flat index into R T of the position that predicts each completion token."""
    target_N: torch.Tensor
    """The completion tokens."""
    members: tuple[int, ...]
    """Indices of the sequences, in the order in which their tokens lie in N."""

    def to(self, device: torch.device) -> PackedBatch:
        """The same batch on a device."""
        mask = self.mask_R1TT
        return PackedBatch(
            self.input_ids_RT.to(device),
            self.position_ids_RT.to(device),
            None if mask is None else mask.to(device),
            self.source_N.to(device),
            self.target_N.to(device),
            self.members,
        )


def plan_rows(
    sequences: Sequence[TokenSequence], *, share: bool, row_tokens: int = SHARED_ROW_TOKENS
) -> list[Row]:
    """Lay sequences out in rows; with `share`, equal prompts follow each other in one row.

    The last token of a completion predicts nothing and is no input, so a completion of R tokens
    takes R - 1 places.
    """
    rows: list[Row] = []
    open_row: dict[tuple[int, ...], int] = {}
    for index, sequence in enumerate(sequences):
        extra = max(len(sequence.completion_ids) - 1, 0)
        place = open_row.get(sequence.prompt_ids) if share else None
        if place is not None and rows[place].tokens + extra <= row_tokens:
            rows[place] = Row((*rows[place].members, index), rows[place].tokens + extra)
            continue
        open_row[sequence.prompt_ids] = len(rows)
        rows.append(Row((index,), len(sequence.prompt_ids) + extra))
    return rows


def plan_micro_batches(rows: Sequence[Row], *, budget_tokens: int) -> list[list[Row]]:
    """Rows of like length together, each batch within the budget, padding included.

    A row that alone exceeds the budget gets a batch of its own.
    """
    batches: list[list[Row]] = []
    for row in sorted(rows, key=lambda row: (row.tokens, row.members)):
        if batches and (len(batches[-1]) + 1) * row.tokens <= budget_tokens:
            batches[-1].append(row)
        else:
            batches.append([row])
    return batches


def build_batch(
    sequences: Sequence[TokenSequence], rows: Sequence[Row], *, pad_id: int
) -> PackedBatch:
    """Fill the tensors of one micro-batch.

    Masks: `mask_R1TT` is True where query may see key: keys of the prompt and of the query's own
    completion, never later ones.
    """
    shape = (len(rows), max(row.tokens for row in rows))
    input_ids_RT = torch.full(shape, pad_id, dtype=torch.long)
    position_ids_RT = torch.zeros(shape, dtype=torch.long)
    segment_RT = torch.full(shape, -1, dtype=torch.long)
    sources: list[torch.Tensor] = []
    targets: list[int] = []
    for r, row in enumerate(rows):
        prompt = sequences[row.members[0]].prompt_ids
        end = len(prompt)
        _fill(input_ids_RT, position_ids_RT, segment_RT, r, 0, prompt, first_position=0, segment=0)
        for segment, member in enumerate(row.members, start=1):
            completion = sequences[member].completion_ids
            inputs = completion[:-1]
            _fill(
                input_ids_RT, position_ids_RT, segment_RT, r, end, inputs,
                first_position=len(prompt), segment=segment,
            )  # fmt: skip
            source = torch.arange(end - 1, end + len(inputs))[: len(completion)]
            source[:1] = len(prompt) - 1
            sources.append(source + r * shape[1])
            targets.extend(completion)
            end += len(inputs)
    shared = any(len(row.members) > 1 for row in rows)
    return PackedBatch(
        input_ids_RT,
        position_ids_RT,
        block_mask(segment_RT) if shared else None,
        torch.cat(sources),
        torch.tensor(targets, dtype=torch.long),
        tuple(member for row in rows for member in row.members),
    )


def block_mask(segment_RT: torch.Tensor) -> torch.Tensor:
    """Causal inside prompt (segment 0) and completion (1, 2, ...); padding (-1) sees itself.

    Shapes: segment_RT -> bool (R, 1, T, T), query before key.
    """
    length = segment_RT.shape[1]
    causal_TT = torch.ones(length, length, dtype=torch.bool, device=segment_RT.device).tril()
    key_R1T, query_RT1 = segment_RT[:, None, :], segment_RT[:, :, None]
    return (causal_TT & ((key_R1T == 0) | (key_R1T == query_RT1)))[:, None]


def _fill(
    input_ids_RT: torch.Tensor,
    position_ids_RT: torch.Tensor,
    segment_RT: torch.Tensor,
    row: int,
    start: int,
    ids: tuple[int, ...],
    *,
    first_position: int,
    segment: int,
) -> None:
    """Write one stretch of tokens into a row."""
    place = slice(start, start + len(ids))
    input_ids_RT[row, place] = torch.tensor(ids, dtype=torch.long)
    position_ids_RT[row, place] = torch.arange(first_position, first_position + len(ids))
    segment_RT[row, place] = segment
