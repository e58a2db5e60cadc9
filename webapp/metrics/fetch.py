"""Fetching stretches of a track: exact points, or the buckets that stand for them.

Used by `read` and `axes`. First say what will be `needed`, load it all at once, then draw.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from webapp.metrics.arrays import (
    FANOUT,
    Structured,
    combine,
    empty_points,
    points_as_buckets,
)
from webapp.metrics.snapshot import ChunkReader, Piece, Track
from webapp.metrics.thinning import (
    Drawn,
    as_buckets,
    cover,
    draw_buckets,
    draw_points,
    group,
    level_for,
)


class Span(NamedTuple):
    """Points [lo, hi) of one piece."""

    piece: Piece
    lo: int
    hi: int


def live_spans(track: Track, lo: int, hi: int) -> list[Span]:
    """The live points [lo, hi) of a track, counted over all attempts, as stretches of pieces."""
    spans = []
    start = 0
    for piece in track.pieces:
        first, end = max(lo - start, 0), min(hi - start, piece.live)
        if first < end:
            spans.append(Span(piece, first, end))
        start += piece.live
    return spans


def count(spans: Sequence[Span]) -> int:
    """Points in the stretches."""
    return sum(span.hi - span.lo for span in spans)


def needed(spans: Sequence[Span], budget: int) -> Iterator[tuple[int, int, int, int]]:
    """What `ChunkReader.load` must load before `draw` can draw the stretches."""
    level = level_for(count(spans), budget)
    for span in spans:
        for covers in cover(span.lo, min(span.hi, span.piece.packed), level):
            for part in covers:
                yield part.level, span.piece.segment, part.lo, part.hi


def fetch_points(reader: ChunkReader, spans: Sequence[Span]) -> Structured:
    """All points of the stretches, loaded before with a budget that admits them."""
    parts = [empty_points()]
    for piece, lo, hi in spans:
        parts.append(reader.entries(0, piece.segment, lo, min(hi, piece.packed)))
        parts.append(piece.tail[max(0, lo - piece.packed) : max(0, hi - piece.packed)])
    return np.concatenate(parts)


def draw(
    reader: ChunkReader, spans: Sequence[Span], budget: int
) -> tuple[Drawn, Structured | None]:
    """What to draw of the stretches; and the buckets behind it, where not every point is drawn."""
    total = count(spans)
    if total <= budget:
        return draw_points(fetch_points(reader, spans)), None
    level = level_for(total, budget)
    parts = [part for span in spans for part in _buckets(reader, span, level)]
    grouped = group(np.concatenate(parts), budget)
    return draw_buckets(grouped), grouped


def _buckets(reader: ChunkReader, span: Span, level: int) -> Iterator[Structured]:
    """A stretch as buckets of one level; shorter ones at the edges."""
    piece, lo, hi = span
    for covers in cover(lo, min(hi, piece.packed), level):
        parts = [
            as_buckets(c.level, reader.entries(c.level, piece.segment, c.lo, c.hi)) for c in covers
        ]
        is_whole = covers[0].level == level
        yield parts[0] if is_whole else _as_one(np.concatenate(parts))
    tail = piece.tail[max(0, lo - piece.packed) : max(0, hi - piece.packed)]
    if len(tail):
        yield combine(points_as_buckets(tail), FANOUT**level)


def _as_one(buckets: Structured) -> Structured:
    return combine(buckets, len(buckets))
