"""X axes: what a step or a moment is on the axis that a person chose.

Used by `read`. `relative` counts the time that the run really worked: pauses, queues and work that
a crash undid do not count. `tokens` and `prompts` come from the run's own counters, straight lines
between their points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args
from uuid import UUID

import numpy as np
from django.utils.translation import gettext_noop
from numpy.typing import NDArray

from webapp.metrics.models import MetricSegment, MetricSeries
from webapp.metrics.snapshot import ChunkReader, Track, load_tracks
from webapp.metrics.thinning import Drawn
from webapp.runs.models import Attempt

Floats = NDArray[np.float64]
AxisKind = Literal["step", "relative", "wall", "tokens", "prompts"]
AXIS_KINDS: tuple[AxisKind, ...] = get_args(AxisKind)


class AxisInfo(NamedTuple):
    """How an axis is labelled."""

    title: str
    """In English, as files have it; a figure translates it."""
    unit: str
    counter: str | None = None
    """Metric whose value is the place on the axis."""


AXES: dict[AxisKind, AxisInfo] = {
    "step": AxisInfo(gettext_noop("step"), "steps"),
    "relative": AxisInfo(gettext_noop("training time"), "s"),
    "wall": AxisInfo(gettext_noop("time"), "ms since 1970"),
    "tokens": AxisInfo(gettext_noop("completion tokens"), "tokens", "num_tokens"),
    "prompts": AxisInfo(gettext_noop("prompts"), "prompts", "num_prompts"),
}


@dataclass
class RunAxis:
    """The chosen axis for one run."""

    kind: AxisKind
    starts: NDArray[np.int64]
    """Moments at which attempts started, in microseconds (for `relative`)."""
    worked: Floats
    """Seconds worked before each of them."""
    steps: Floats
    """Steps at which the counter is known (for `tokens` and `prompts`)."""
    counts: Floats
    """Its values there."""

    @property
    def is_known(self) -> bool:
        """Whether the run has what the axis needs."""
        return AXES[self.kind].counter is None or len(self.steps) > 0

    def place(self, step: NDArray[np.int64], t: NDArray[np.int64]) -> Floats:
        """Places on the axis of points given by step and time. Shapes: (N,), (N,) -> (N,)."""
        if self.kind == "step":
            return step.astype(np.float64)
        if self.kind == "wall":
            return t / 1e3
        if self.kind == "relative":
            k = np.maximum(np.searchsorted(self.starts, t, "right") - 1, 0)
            return (t - self.starts[k]) / 1e6 + self.worked[k]
        return np.interp(step.astype(np.float64), self.steps, self.counts)


def step_axis() -> RunAxis:
    """The axis that needs nothing."""
    none = np.zeros(0)
    return RunAxis("step", none.astype(np.int64), none, none, none)


def counter_axis(kind: AxisKind, drawn: Drawn | None) -> RunAxis:
    """An axis along a counter, which is 0 at step 0 and never falls; None where it is unknown."""
    axis = step_axis()
    axis.kind = kind
    if drawn is None:
        return axis
    known = np.isfinite(drawn.value)
    steps, counts = drawn.step[known].astype(np.float64), drawn.value[known]
    if len(steps) and steps[0] > 0:
        steps, counts = np.append(0.0, steps), np.append(0.0, counts)
    axis.steps, axis.counts = steps, np.maximum.accumulate(counts)
    return axis


def time_axis(kind: AxisKind, reader: ChunkReader, run_id: UUID) -> RunAxis:
    """An axis along time: the clock's, or the run's own working time."""
    axis = step_axis()
    axis.kind = kind
    if kind == "relative":
        spans = _working_spans(reader, run_id)
        lengths = [(end - start) / 1e6 for start, end in spans]
        axis.starts = np.array([start for start, _ in spans] or [0], np.int64)
        axis.worked = np.array([sum(lengths[:i]) for i in range(len(spans))] or [0.0])
    return axis


def step_range(
    axis: RunAxis, drawn: Drawn, lo: float | None, hi: float | None
) -> tuple[int | None, int | None]:
    """Steps that hold all points between two places on the axis, as tight as `drawn` can tell."""
    if len(drawn.step) == 0:
        return None, None
    place = np.maximum.accumulate(axis.place(drawn.step, drawn.t))
    first = last = None
    if lo is not None:
        first = int(drawn.step[max(0, int(np.searchsorted(place, lo, "left")) - 1)])
    if hi is not None:
        last = int(drawn.step[min(len(place) - 1, int(np.searchsorted(place, hi, "right")))])
    return first, last


def _working_spans(reader: ChunkReader, run_id: UUID) -> list[tuple[int, int]]:
    """For each attempt with live points: start, and end of what counts, in microseconds."""
    rows = Attempt.objects.filter(run_id=run_id).values_list("number", "started_at")
    started = {number: round(at.timestamp() * 1e6) for number, at in rows}
    track = _densest_track(reader, run_id)
    spans = []
    for piece in track.pieces if track else []:
        if piece.live:
            ends = _times_at(reader, track, piece.attempt, [0, piece.live - 1])
            start = min(started.get(piece.attempt, ends[0]), ends[0])
            spans.append((start, max(start, ends[1])))
    return spans


def _densest_track(reader: ChunkReader, run_id: UUID) -> Track | None:
    """The series of the run with the most points."""
    segment = (
        MetricSegment.objects.filter(series__run_id=run_id)
        .order_by("-n", "series_id")
        .values_list("series__key", flat=True)
        .first()
    )
    key = (
        segment
        or (
            MetricSeries.objects.filter(run_id=run_id).order_by("id").values_list("key", flat=True)
        ).first()
    )
    return load_tracks(reader, [run_id], [key]).get((run_id, key)) if key else None


def _times_at(
    reader: ChunkReader, track: Track | None, attempt: int, places: Sequence[int]
) -> list[int]:
    """Times of points of one attempt, by ordinal."""
    piece = next(p for p in (track.pieces if track else []) if p.attempt == attempt)
    packed = [place for place in places if place < piece.packed]
    reader.load((0, piece.segment, place, place + 1) for place in packed)
    return [
        int(
            reader.entries(0, piece.segment, place, place + 1)["t"][0]
            if place < piece.packed
            else piece.tail["t"][place - piece.packed]
        )
        for place in places
    ]
