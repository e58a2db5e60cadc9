"""Token sequences as rows of a rectangular batch, in which equal beginnings are computed once.

Called by `algorithms.update` and `sft`. A row is a tree: sequences that begin alike (the chat frame
and system prompt of a domain, the prompt of a group, the opening tag of its completions, whole
completions that were sampled twice) share those tokens, and each token sees its own ancestors
alone. Exact, because attention is causal, and for short completions several times faster. Rows that
share nothing are right-padded and need no mask at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

import torch

SHARED_ROW_TOKENS = 1024
"""Longest row of one prompt's completions; attention's square would eat the gain beyond it."""
JOINED_ROW_TOKENS = 256
"""Longest row that several prompts share: they have less in common, so the square weighs more."""
SHORTEST_SHARED_TOKENS = 8
"""A shorter common beginning of two prompts is not worth a mask."""


@dataclass(frozen=True)
class TokenSequence:
    """A prompt and one completion of it, as ids."""

    prompt_ids: tuple[int, ...]
    completion_ids: tuple[int, ...]

    @property
    def input_ids(self) -> tuple[int, ...]:
        """What the model reads: the last token of a completion predicts nothing."""
        return self.prompt_ids + self.completion_ids[:-1]


@dataclass(frozen=True)
class Row:
    """Sequences that are laid out as one tree of tokens."""

    members: tuple[int, ...]
    """Indices of the sequences, in the order in which they are laid out."""
    tokens: int
    """Length of the row."""


@dataclass(frozen=True)
class PackedBatch:
    """One forward pass. R row, T token, N completion token of the batch, laid end to end, S place
    that predicts completion tokens: fewer than N where sequences share tokens."""

    input_ids_RT: torch.Tensor
    """Ids, padded on the right."""
    position_ids_RT: torch.Tensor
    """Position of each token in its own sequence."""
    mask_R1TT: torch.Tensor | None
    """True where a token may look; None for plain causal attention."""
    source_S: torch.Tensor
    """Flat index into R T of each place that predicts completion tokens, ascending."""
    source_of_N: torch.Tensor
    """Index into S of the place that predicts each completion token."""
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
            self.source_S.to(device),
            self.source_of_N.to(device),
            self.target_N.to(device),
            self.members,
        )


def plan_rows(
    sequences: Sequence[TokenSequence], *, share: bool, row_tokens: int = SHARED_ROW_TOKENS
) -> list[Row]:
    """Rows of the completions of one prompt each; without `share`, of one sequence each."""
    if not share:
        return [Row((i,), len(sequence.input_ids)) for i, sequence in enumerate(sequences)]
    order = sorted(range(len(sequences)), key=lambda i: _place_of(sequences[i]))
    rows: list[Row] = []
    for _, group in groupby(order, key=lambda i: sequences[i].prompt_ids):
        rows += _rows_of_a_prompt(sequences, group, row_tokens)
    return rows


def join_rows(
    sequences: Sequence[TokenSequence],
    rows: Sequence[Row],
    *,
    row_tokens: int = JOINED_ROW_TOKENS,
) -> list[Row]:
    """Rows of several prompts where those begin alike: as few rows as may be, of like length."""
    ordered = sorted(rows, key=lambda row: _place_of(sequences[row.members[0]]))
    fewest = len(_join(sequences, ordered, row_tokens))
    low, high = 0, row_tokens
    while low < high:  # the lowest limit that needs no more rows
        middle = (low + high) // 2
        if len(_join(sequences, ordered, middle)) == fewest:
            high = middle
        else:
            low = middle + 1
    return _join(sequences, ordered, low)


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

    Masks: `mask_R1TT` is True where query may see key: itself and its ancestors.
    """
    shape = (len(rows), max(row.tokens for row in rows))
    input_ids_RT = torch.full(shape, pad_id, dtype=torch.long)
    position_ids_RT = torch.zeros(shape, dtype=torch.long)
    mask_RTT = torch.eye(shape[1], dtype=torch.bool).repeat(len(rows), 1, 1)
    sources: list[torch.Tensor] = []
    targets: list[int] = []
    forks = False
    for r, row in enumerate(rows):
        path: list[int] = []  # places of the sequence before, then of this one
        before: tuple[int, ...] = ()
        end = 0
        for member in row.members:
            inputs = sequences[member].input_ids
            shared = common_tokens(before, inputs)
            start, end = end, end + len(inputs) - shared
            forks |= shared < len(path)
            path[shared:] = range(start, end)
            input_ids_RT[r, start:end] = torch.tensor(inputs[shared:], dtype=torch.long)
            position_ids_RT[r, start:end] = torch.arange(shared, len(inputs))
            mask_RTT[r, start:end, path[:shared]] = True
            mask_RTT[r, start:end, start:end] = mask_RTT.new_ones(end - start, end - start).tril()
            before = inputs
            completion = sequences[member].completion_ids
            first = len(sequences[member].prompt_ids) - 1
            source = torch.tensor(path[first : first + len(completion)], dtype=torch.long)
            sources.append(source + r * shape[1])
            targets.extend(completion)
    source_S, source_of_N = torch.cat(sources).unique(return_inverse=True)  # type: ignore[no-untyped-call]
    return PackedBatch(
        input_ids_RT,
        position_ids_RT,
        mask_RTT[:, None] if forks else None,
        source_S,
        source_of_N,
        torch.tensor(targets, dtype=torch.long),
        tuple(member for row in rows for member in row.members),
    )


def common_tokens(one: Sequence[int], other: Sequence[int]) -> int:
    """How many first tokens two sequences have in common."""
    length = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        length += 1
    return length


def _place_of(sequence: TokenSequence) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """What sequences are sorted by, so that those with much in common are neighbours."""
    return sequence.prompt_ids, sequence.completion_ids


def _rows_of_a_prompt(
    sequences: Sequence[TokenSequence], members: Iterable[int], row_tokens: int
) -> list[Row]:
    """One prompt's sequences in as many rows as they need."""
    rows: list[Row] = []
    for index in members:
        inputs = sequences[index].input_ids
        if rows:
            shared = common_tokens(sequences[rows[-1].members[-1]].input_ids, inputs)
            tokens = rows[-1].tokens + len(inputs) - shared
            if tokens <= row_tokens:
                rows[-1] = Row((*rows[-1].members, index), tokens)
                continue
        rows.append(Row((index,), len(inputs)))
    return rows


def _join(sequences: Sequence[TokenSequence], rows: Sequence[Row], row_tokens: int) -> list[Row]:
    """Each row behind the one before, where they share enough and the result is short enough."""
    joined: list[Row] = []
    for row in rows:
        if joined:
            last, first = joined[-1].members[-1], row.members[0]
            shared = common_tokens(sequences[last].input_ids, sequences[first].input_ids)
            tokens = joined[-1].tokens + row.tokens - shared
            if shared >= SHORTEST_SHARED_TOKENS and tokens <= row_tokens:
                joined[-1] = Row(joined[-1].members + row.members, tokens)
                continue
        joined.append(row)
    return joined
