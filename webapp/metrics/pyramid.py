"""Chunks on disk: adding points to segments and keeping the levels above them right.

Called by `webapp.metrics.services` under the run's head lock. Level 0 holds points, level k buckets
of 16^k points; only whole buckets are stored, and only the last chunk of a level ever changes, so
adding a point costs a constant amount on average. A write into the past cuts the segment back to
the chunk concerned and adds the rest again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from django.db import connection
from django.db.models import Max

from webapp.metrics.arrays import (
    BUCKET,
    FANOUT,
    POINT,
    Structured,
    combine,
    merge_points,
    points_as_buckets,
    same_points,
)
from webapp.metrics.codec import pack, unpack
from webapp.metrics.models import MetricChunk, MetricSegment

_CAPACITY = (1024, 64)
_CAPACITY_ABOVE = 256


class Addition(NamedTuple):
    """Points for the end of one segment; all lie beyond its last step."""

    segment: MetricSegment
    points: Structured


def capacity(level: int) -> int:
    """Entries of a full chunk; a multiple of the fan-out, so that a bucket never spans two."""
    return _CAPACITY[level] if level < len(_CAPACITY) else _CAPACITY_ABOVE


def dtype_of(level: int) -> np.dtype[Any]:
    """What an entry of a level is."""
    return POINT if level == 0 else BUCKET


def load_chunks(level: int, wanted: Sequence[tuple[int, int]]) -> dict[tuple[int, int], Structured]:
    """Chunks of one level by (segment, index), unpacked."""
    if not wanted:
        return {}
    segments, indexes = zip(*wanted, strict=True)
    with connection.cursor() as cursor:
        cursor.execute(
            'SELECT c.segment_id, c."index", c.n, c.packed FROM metrics_metricchunk c'
            " JOIN unnest(%s::bigint[], %s::int[]) AS w(segment_id, i)"
            ' ON c.segment_id = w.segment_id AND c.level = %s AND c."index" = w.i',
            [list(segments), list(indexes), level],
        )
        return {
            (segment, index): unpack(packed, dtype_of(level), n)
            for segment, index, n, packed in cursor.fetchall()
        }


def extend(additions: Sequence[Addition]) -> None:
    """Add points at the end of segments; saves chunks and the segments' counts."""
    segments = {a.segment.pk: a.segment for a in additions if len(a.points)}
    fresh = {a.segment.pk: a.points for a in additions if len(a.points)}
    rows: list[MetricChunk] = []
    level, unit = 0, 1
    while fresh:
        before = {pk: segments[pk].n // unit for pk in fresh}
        open_chunks = _load_open(level, before)
        above: dict[int, Structured] = {}
        for pk, entries in fresh.items():
            joined = np.concatenate([open_chunks.get(pk, np.zeros(0, dtype_of(level))), entries])
            rows += _chunk_rows(pk, level, before[pk] + len(entries) - len(joined), joined)
            whole = _whole_groups(level, before[pk], len(entries), joined)
            if len(whole):
                above[pk] = whole
        fresh = above
        level, unit = level + 1, unit * FANOUT
    _save_chunks(rows)
    for addition in additions:
        _count(addition)
    MetricSegment.objects.bulk_update(segments.values(), ["n", "first_step", "last_step"])


def rewrite(segment: MetricSegment, points: Structured) -> int | None:
    """Merge points into the past of a segment.

    Returns how many of its points were written anew, or None when it held all of them already.
    """
    index = _chunk_with(segment, int(points["step"][0]))
    kept = index * capacity(0)
    last = (segment.n - 1) // capacity(0)
    chunks = load_chunks(0, [(segment.pk, i) for i in range(index, last + 1)])
    old = np.concatenate([chunks[segment.pk, i] for i in range(index, last + 1)])
    merged = merge_points(old, points)
    if same_points(old, merged):
        return None
    _cut_back(segment, kept)
    extend([Addition(segment, merged)])
    return len(old) + len(points) - len(merged)


def _whole_groups(level: int, before: int, added: int, joined: Structured) -> Structured:
    """Buckets of the next level that the new entries complete."""
    start = before + added - len(joined)  # place of joined[0] in the level
    first, end = before // FANOUT, (before + added) // FANOUT
    part = joined[first * FANOUT - start : end * FANOUT - start] if end > first else joined[:0]
    return combine(points_as_buckets(part) if level == 0 else part, FANOUT)


def _load_open(level: int, before: dict[int, int]) -> dict[int, Structured]:
    """The last chunk of each segment, where it is not full."""
    size = capacity(level)
    wanted = [(pk, count // size) for pk, count in before.items() if count % size]
    return {pk: chunk for (pk, _), chunk in load_chunks(level, wanted).items()}


def _chunk_rows(segment: int, level: int, start: int, entries: Structured) -> list[MetricChunk]:
    """Entries from place `start` of a level on, cut into chunks."""
    size = capacity(level)
    rows = []
    for begin in range(0, len(entries), size):
        part = entries[begin : begin + size]
        rows.append(
            MetricChunk(
                segment_id=segment,
                level=level,
                index=(start + begin) // size,
                n=len(part),
                first_step=int(part["step" if level == 0 else "lo_step"][0]),
                max_version=int(part["version"].max()) if level == 0 else 0,
                packed=pack(part, compact=level > 0 or len(part) == size),
            )
        )
    return rows


def _save_chunks(rows: list[MetricChunk]) -> None:
    MetricChunk.objects.bulk_create(
        rows,
        batch_size=500,
        update_conflicts=True,
        unique_fields=["segment", "level", "index"],
        update_fields=["n", "first_step", "max_version", "packed"],
    )


def _count(addition: Addition) -> None:
    """Bring a segment's count and range up to date."""
    segment, points = addition
    if len(points) == 0:
        return
    if segment.n == 0:
        segment.first_step = int(points["step"][0])
    segment.n += len(points)
    segment.last_step = int(points["step"][-1])


def _chunk_with(segment: MetricSegment, step: int) -> int:
    """Index of the level-0 chunk that holds a step or would hold it."""
    index = (
        MetricChunk.objects.filter(segment=segment, level=0, first_step__lte=step)
        .order_by("-index")
        .values_list("index", flat=True)
        .first()
    )
    return index or 0


def _cut_back(segment: MetricSegment, n: int) -> None:
    """Leave the first `n` points (a multiple of a chunk) and the buckets that lie whole in them."""
    kept = n
    top = MetricChunk.objects.filter(segment=segment).aggregate(level=Max("level"))["level"]
    for level in range((top or 0) + 1):
        size = capacity(level)
        index, left = divmod(kept, size)
        MetricChunk.objects.filter(
            segment=segment, level=level, index__gte=index + (1 if left else 0)
        ).delete()
        if left:
            chunk = load_chunks(level, [(segment.pk, index)])[segment.pk, index]
            _save_chunks(_chunk_rows(segment.pk, level, index * size, chunk[:left]))
        kept //= FANOUT
    segment.n = n
