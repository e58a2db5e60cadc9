"""What the store holds about the series of a request, at one moment.

Used by `read`. A track is one series; its pieces are its attempts, each with the points that count
as live: an attempt ends where a later one started, or where a later one wrote the series again.
Points are addressed by their ordinal in the piece, packed ones first, then those of the tail.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from uuid import UUID

import numpy as np
from django.db import connection, transaction

from webapp.metrics.arrays import Structured, empty_points
from webapp.metrics.models import MetricCut, MetricHead, MetricSegment, MetricSeries
from webapp.metrics.pyramid import capacity, dtype_of, load_chunks
from webapp.metrics.tail import load_tail


@dataclass
class Piece:
    """One attempt of a series."""

    attempt: int
    segment: int = 0
    """Id of its packed part."""
    packed: int = 0
    """Points in it."""
    first_packed: int = 0
    last_packed: int = 0
    tail: Structured = field(default_factory=empty_points)
    live: int = 0
    """Points from the first on that are not superseded."""
    trimmed_by: int = 0
    """The later attempt whose own points end this piece, if one does."""

    @property
    def n(self) -> int:
        """All its points."""
        return self.packed + len(self.tail)

    @property
    def first_step(self) -> int:
        """Step of its first point."""
        return self.first_packed if self.packed else int(self.tail["step"][0])

    @property
    def last_step(self) -> int:
        """Step of its last point."""
        return int(self.tail["step"][-1]) if len(self.tail) else self.last_packed


@dataclass
class Track:
    """One series of one run."""

    run_id: UUID
    key: str
    changed_version: int
    """Newest write that did more than add points behind all live ones."""
    pieces: list[Piece]

    @property
    def n_live(self) -> int:
        """Points that are not superseded."""
        return sum(piece.live for piece in self.pieces)


class ChunkReader:
    """Chunks of this request, each loaded once and counted."""

    def __init__(self) -> None:
        self.chunks: dict[tuple[int, int, int], Structured] = {}

    def load(self, wanted: Iterable[tuple[int, int, int, int]]) -> None:
        """Load what entries [lo, hi) of (level, segment, lo, hi) lie in; one query a level."""
        missing: dict[int, set[tuple[int, int]]] = defaultdict(set)
        for level, segment, lo, hi in wanted:
            size = capacity(level)
            for index in range(lo // size, -(-hi // size) if hi > lo else lo // size):
                if (level, segment, index) not in self.chunks:
                    missing[level].add((segment, index))
        for level, pairs in missing.items():
            for (segment, index), chunk in load_chunks(level, sorted(pairs)).items():
                self.chunks[level, segment, index] = chunk

    def entries(self, level: int, segment: int, lo: int, hi: int) -> Structured:
        """Entries [lo, hi) of a level, from chunks loaded before."""
        size = capacity(level)
        if hi <= lo:
            return np.zeros(0, dtype_of(level))
        indexes = range(lo // size, -(-hi // size))
        joined = np.concatenate([self.chunks[level, segment, i] for i in indexes])
        return joined[lo - indexes[0] * size : hi - indexes[0] * size]


@contextmanager
def consistent_read() -> Iterator[None]:
    """See one moment of the database, so that points moving from tail to chunks count once."""
    if connection.in_atomic_block:  # the caller's transaction decides
        yield
        return
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield


def load_versions(run_ids: Sequence[UUID]) -> dict[UUID, int]:
    """Newest write of each run; 0 for a run without metrics."""
    known = dict(MetricHead.objects.filter(run_id__in=run_ids).values_list("run_id", "version"))
    return {run_id: known.get(run_id, 0) for run_id in run_ids}


def load_tracks(
    reader: ChunkReader, run_ids: Sequence[UUID], keys: Sequence[str]
) -> dict[tuple[UUID, str], Track]:
    """Tracks of all (run, key) that exist."""
    rows = MetricSeries.objects.filter(run_id__in=run_ids, key__in=keys)
    series = {row.pk: row for row in rows}
    pieces: dict[int, dict[int, Piece]] = {pk: {} for pk in series}
    for segment in MetricSegment.objects.filter(series_id__in=list(series), n__gt=0):
        pieces[segment.series_id][segment.attempt] = Piece(
            segment.attempt, segment.pk, segment.n, segment.first_step, segment.last_step
        )
    _add_tails(pieces, {pk: row.run_id for pk, row in series.items()}, run_ids)
    cuts = _load_cuts(run_ids)
    tracks = {}
    for pk, row in series.items():
        if not pieces[pk]:
            continue
        ordered = [pieces[pk][attempt] for attempt in sorted(pieces[pk])]
        changed = max([row.changed_version, *(cut.version for cut in cuts[row.run_id])])
        tracks[row.run_id, row.key] = Track(row.run_id, row.key, changed, ordered)
    _find_live(reader, tracks, cuts)
    return tracks


def count_upto(reader: ChunkReader, questions: Sequence[tuple[Piece, int]]) -> list[int]:
    """For each (piece, step): how many of its points lie at or before the step."""
    inside = [(p, s) for p, s in questions if p.packed and p.first_packed <= s < p.last_packed]
    indexes = _find_chunks([(piece.segment, step) for piece, step in inside])
    size = capacity(0)
    reader.load((0, segment, i * size, i * size + 1) for (segment, _), i in indexes.items())
    counts = []
    for piece, step in questions:
        if piece.packed and step < piece.first_packed:
            counts.append(0)
        elif piece.packed and step < piece.last_packed:
            index = indexes[piece.segment, step]
            chunk = reader.chunks[0, piece.segment, index]
            counts.append(index * size + int(np.searchsorted(chunk["step"], step, "right")))
        else:
            counts.append(piece.packed + int(np.searchsorted(piece.tail["step"], step, "right")))
    return counts


def _add_tails(
    pieces: dict[int, dict[int, Piece]], run_of: dict[int, UUID], run_ids: Sequence[UUID]
) -> None:
    """Add the points that are not packed yet."""
    heads = MetricHead.objects.filter(run_id__in=run_ids, tail_rows__gt=0)
    attempts = dict(heads.values_list("run_id", "attempt"))
    for series, points in load_tail(*attempts).items():
        if series in pieces:
            attempt = attempts[run_of[series]]
            pieces[series].setdefault(attempt, Piece(attempt)).tail = points


def _load_cuts(run_ids: Sequence[UUID]) -> dict[UUID, list[MetricCut]]:
    cuts: dict[UUID, list[MetricCut]] = defaultdict(list)
    for cut in MetricCut.objects.filter(run_id__in=run_ids):
        cuts[cut.run_id].append(cut)
    return cuts


def _find_live(
    reader: ChunkReader, tracks: dict[tuple[UUID, str], Track], cuts: dict[UUID, list[MetricCut]]
) -> None:
    """Set `live` of all pieces."""
    questions = []
    for track in tracks.values():
        for i, piece in enumerate(track.pieces):
            ends = [c.start_step for c in cuts[track.run_id] if c.attempt > piece.attempt]
            later = min(track.pieces[i + 1 :], key=lambda p: p.first_step, default=None)
            if later and later.first_step <= min([piece.last_step, *ends]):
                piece.trimmed_by = later.attempt
                ends.append(later.first_step - 1)
            if ends and min(ends) < piece.last_step:
                questions.append((piece, min(ends)))
            else:
                piece.live = piece.n
    for (piece, _), count in zip(questions, count_upto(reader, questions), strict=True):
        piece.live = count


def _find_chunks(questions: Sequence[tuple[int, int]]) -> dict[tuple[int, int], int]:
    """Index of the level-0 chunk that holds a step, by (segment, step)."""
    if not questions:
        return {}
    segments, steps = zip(*questions, strict=True)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT w.segment_id, w.step, c.i FROM unnest(%s::bigint[], %s::bigint[])"
            ' AS w(segment_id, step) CROSS JOIN LATERAL (SELECT "index" AS i'
            " FROM metrics_metricchunk WHERE segment_id = w.segment_id AND level = 0"
            ' AND first_step <= w.step ORDER BY "index" DESC LIMIT 1) AS c',
            [list(segments), list(steps)],
        )
        return {(segment, step): index for segment, step, index in cursor.fetchall()}
