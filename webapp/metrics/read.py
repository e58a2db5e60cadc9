"""Reading curves: any window of any series at any budget, touching only what is drawn.

Called by the curves endpoint, the exports and the report. Which points count is decided in
`snapshot`, which are drawn in `thinning`; this module plans, loads everything in a few queries and
joins. With versions that the caller knows, only newer points are returned, or the whole curve where
more than its end changed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np

from webapp.metrics.arrays import Structured
from webapp.metrics.axes import AXES, RunAxis, counter_axis, step_axis, step_range, time_axis
from webapp.metrics.curves import Band, Curve, CurveQuery, CurveSet, Ghost, Line
from webapp.metrics.fetch import Span, count, draw, fetch_points, live_spans, needed
from webapp.metrics.models import MetricChunk
from webapp.metrics.pyramid import capacity
from webapp.metrics.smoothing import reach, smooth
from webapp.metrics.snapshot import (
    ChunkReader,
    Track,
    consistent_read,
    count_upto,
    load_tracks,
    load_versions,
)
from webapp.metrics.thinning import Drawn, draw_smoothed

ALL = 2**60
AXIS_BUDGET = 6000
"""Points with which a counter or a clock is known when it serves as an axis."""
GHOST_SHARE = 4
"""A superseded line gets this part of the budget."""


@dataclass
class Job:
    """One curve being made: live points [lo, hi) of a track."""

    track: Track
    axis: RunAxis
    lo: int
    hi: int
    is_append: bool = False


def read_curves(query: CurveQuery) -> CurveSet:
    """All curves of the query that exist, runs and keys in the order asked for."""
    reader = ChunkReader()
    with consistent_read():
        versions = load_versions(query.run_ids)
        tracks = load_tracks(reader, query.run_ids, query.keys)
        axes = {run_id: _axis(reader, query, run_id) for run_id, _ in tracks}
        jobs = [
            Job(tracks[run_id, key], axes[run_id], 0, tracks[run_id, key].n_live)
            for run_id in query.run_ids
            for key in query.keys
            if (run_id, key) in tracks
        ]
        if query.since is not None:
            known = dict(zip(query.run_ids, query.since, strict=True))
            jobs = _news(reader, jobs, known, query.budget)
        if query.lo is not None or query.hi is not None:
            _narrow(reader, query, [job for job in jobs if not job.is_append])
        reader.load(need for job in jobs for need in _needs(job, query))
        curves = [_curve(reader, job, query) for job in jobs]
    return CurveSet(curves, tuple(versions[run_id] for run_id in query.run_ids))


def read_series(run_id: UUID, key: str) -> list[tuple[int, float]]:
    """All live (step, value) of one series."""
    curves = read_curves(CurveQuery((run_id,), (key,), budget=ALL)).curves
    return [
        point
        for curve in curves
        for point in zip(curve.line.step.tolist(), curve.line.y.tolist(), strict=True)
    ]


def _axis(reader: ChunkReader, query: CurveQuery, run_id: UUID) -> RunAxis:
    """The axis of one run."""
    counter = AXES[query.axis].counter
    if counter is None:
        is_time = query.axis != "step"
        return time_axis(query.axis, reader, run_id) if is_time else step_axis()
    track = load_tracks(reader, [run_id], [counter]).get((run_id, counter))
    return counter_axis(query.axis, _overview(reader, track) if track else None)


def _overview(reader: ChunkReader, track: Track) -> Drawn:
    """The whole track, thinned."""
    spans = live_spans(track, 0, track.n_live)
    reader.load(needed(spans, AXIS_BUDGET))
    return draw(reader, spans, AXIS_BUDGET)[0]


def _narrow(reader: ChunkReader, query: CurveQuery, jobs: Sequence[Job]) -> None:
    """Set the window of each job, with one neighbour on each side so that lines reach the edge."""
    questions = []
    for job in jobs:
        first, last = _window_steps(reader, query, job)
        for piece in job.track.pieces:
            questions.append((piece, first - 1))
            questions.append((piece, last))
    counts = iter(count_upto(reader, questions))
    for job in jobs:
        pairs = [(next(counts), next(counts), piece.live) for piece in job.track.pieces]
        job.lo = max(0, sum(min(lo, live) for lo, _, live in pairs) - 1)
        job.hi = min(job.track.n_live, sum(min(hi, live) for _, hi, live in pairs) + 1)


def _window_steps(reader: ChunkReader, query: CurveQuery, job: Job) -> tuple[int, int]:
    """First and last step of the window."""
    low, high = -ALL, ALL
    if query.axis == "step":
        first = low if query.lo is None else int(np.ceil(np.clip(query.lo, low, high)))
        last = high if query.hi is None else int(np.floor(np.clip(query.hi, low, high)))
        return first, last
    found = step_range(job.axis, _overview(reader, job.track), query.lo, query.hi)
    return (low if found[0] is None else found[0]), (high if found[1] is None else found[1])


def _news(
    reader: ChunkReader, jobs: Sequence[Job], since: dict[UUID, int], budget: int
) -> list[Job]:
    """The jobs that have anything newer than what the caller knows, cut to what is newer."""
    fresh = _fresh_chunks(reader, jobs, min(since.values(), default=0))
    kept = []
    for job in jobs:
        known = since[job.track.run_id]
        if job.track.changed_version <= known and not _is_newly_trimmed(job, fresh, known):
            first = _first_new(job.track, fresh, known)
            if first is None:
                continue
            if job.hi - first <= budget:
                job.lo, job.is_append = first, True
        kept.append(job)
    return kept


def _fresh_chunks(
    reader: ChunkReader, jobs: Sequence[Job], known: int
) -> dict[int, list[tuple[int, Structured]]]:
    """Packed points in chunks newer than a version, by segment: (ordinal of the first, points)."""
    segments = [p.segment for job in jobs for p in job.track.pieces if p.packed]
    rows = MetricChunk.objects.filter(segment_id__in=segments, level=0, max_version__gt=known)
    found = sorted(rows.values_list("segment_id", "index", "n"))
    size = capacity(0)
    reader.load((0, segment, i * size, i * size + n) for segment, i, n in found)
    fresh = defaultdict(list)
    for segment, i, _ in found:
        fresh[segment].append((i * size, reader.chunks[0, segment, i]))
    return fresh


def _first_new(
    track: Track, fresh: dict[int, list[tuple[int, Structured]]], known: int
) -> int | None:
    """Ordinal of the first live point newer than a version, over all attempts; None without."""
    start = 0
    for piece in track.pieces:
        for offset, points in [*fresh[piece.segment], (piece.packed, piece.tail)]:
            new = np.flatnonzero(points["version"] > known)
            if len(new) and offset + new[0] < piece.live:
                return start + offset + int(new[0])
        start += piece.live
    return None


def _is_newly_trimmed(job: Job, fresh: dict[int, list[tuple[int, Structured]]], known: int) -> bool:
    """Whether an attempt that began since then hides points of an earlier one."""
    trimmers = {piece.trimmed_by for piece in job.track.pieces}
    for piece in job.track.pieces:
        if piece.attempt in trimmers:
            head = fresh[piece.segment][:1] if piece.packed else [(0, piece.tail)]
            if any(start == 0 and points["version"][0] > known for start, points in head):
                return True
    return False


def _lead(job: Job, query: CurveQuery) -> list[Span]:
    """The points before the window that still move its smoothed line."""
    return live_spans(job.track, max(0, job.lo - reach(query.weight)), job.lo)


def _ghost_spans(job: Job, query: CurveQuery) -> list[Span]:
    """What is superseded, with the live point before it, so that the lines meet."""
    if not query.superseded or job.is_append:
        return []
    pieces = [piece for piece in job.track.pieces if piece.live < piece.n]
    return [Span(piece, max(0, piece.live - 1), piece.n) for piece in pieces]


def _needs(job: Job, query: CurveQuery) -> Iterator[tuple[int, int, int, int]]:
    """Everything that `_curve` will read."""
    spans = live_spans(job.track, job.lo, job.hi)
    yield from needed(spans, ALL if job.is_append else query.budget)
    if query.weight > 0:
        yield from needed([*_lead(job, query), *spans], ALL)
    for span in _ghost_spans(job, query):
        yield from needed([span], query.budget // GHOST_SHARE)


def _curve(reader: ChunkReader, job: Job, query: CurveQuery) -> Curve:
    """One finished curve."""
    spans = live_spans(job.track, job.lo, job.hi)
    budget = ALL if job.is_append else query.budget
    drawn, buckets = draw(reader, spans, budget)
    smoothed = None
    if query.weight > 0:
        lead = fetch_points(reader, _lead(job, query))
        points = fetch_points(reader, spans)
        values = smooth(np.concatenate([lead["value"], points["value"]]), query.weight)
        smoothed = draw_smoothed(points, values[len(lead) :], budget)
    ghosts = []
    for span in _ghost_spans(job, query):
        hidden, _ = draw(reader, [span], query.budget // GHOST_SHARE)
        ghosts.append(Ghost(span.piece.attempt, _line(job.axis, hidden)))
    return Curve(
        run_id=job.track.run_id,
        key=job.track.key,
        mode="append" if job.is_append else "full",
        n_total=count(spans),
        exact=buckets is None,
        bad=drawn.bad,
        line=_line(job.axis, drawn),
        smoothed=_line(job.axis, smoothed) if smoothed else None,
        band=_band(job.axis, buckets) if buckets is not None else None,
        ghosts=tuple(ghosts),
        has_axis=job.axis.is_known,
    )


def _line(axis: RunAxis, drawn: Drawn) -> Line:
    """Points on the axis; none where the run lacks it."""
    end = len(drawn.step) if axis.is_known else 0
    step, t, value = drawn.step[:end], drawn.t[:end], drawn.value[:end]
    return Line(axis.place(step, t) if end else np.zeros(0), value, step, t)


def _band(axis: RunAxis, buckets: Structured) -> Band:
    """Extremes around the middle of each bucket that has finite values."""
    filled = buckets[buckets["finite"] > 0] if axis.is_known else buckets[:0]
    middle = (filled["lo_step"] + filled["hi_step"]) // 2
    moment = (filled["first_t"] + filled["last_t"]) // 2
    x = axis.place(middle, moment) if len(filled) else np.zeros(0)
    return Band(x, filled["min"], filled["max"])
