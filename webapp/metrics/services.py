"""Writing metrics: the one way points enter the store.

Called by `webapp.lifecycle` inside the transaction that moves the run's read offset, so a point is
stored exactly when its event counts as read. Writers of one run queue up on the run's head row;
different runs never touch the same row. Nothing here raises because of a metric's name or value:
what cannot be stored is counted in `MetricHead.refused`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

import numpy as np
from django.db import transaction
from django.db.models import F

from webapp.metrics import pyramid
from webapp.metrics.arrays import Structured, same_points
from webapp.metrics.models import (
    MetricChunk,
    MetricCut,
    MetricHead,
    MetricSegment,
    MetricSeries,
    MetricTail,
)
from webapp.metrics.tail import ENTRY, join_tails, load_tail, split_entries, write_tail

MAX_KEYS = 2000
MAX_KEY_BYTES = 255
MAX_STEP = 2**53
"""Beyond it a browser could not tell neighbouring steps apart."""
TAIL_ROWS = 64
TAIL_POINTS = 8192


class MetricPoint(NamedTuple):
    """All metrics of one step."""

    step: int
    """Steps done."""
    t: float
    """Seconds since 1970 (UTC)."""
    values: dict[str, float]
    """Metric name to value; NaN and infinities are welcome."""


def append_points(run_id: UUID, attempt: int, points: Sequence[MetricPoint]) -> None:
    """Store points of one attempt. To repeat a call changes nothing; a later value wins."""
    if not any(point.values for point in points):
        return
    with transaction.atomic(savepoint=False):
        head = lock_head(run_id)
        entries, refused = _entries(run_id, points)
        head.refused += refused
        if len(entries):
            head.version += 1
            _store(head, attempt, entries)
        head.save()


def supersede_after(run_id: UUID, attempt: int, start_step: int) -> None:
    """Attempt `attempt` starts after `start_step`: hide what earlier ones logged beyond it."""
    with transaction.atomic(savepoint=False):
        head = lock_head(run_id)
        known = MetricCut.objects.filter(run_id=run_id, attempt=attempt).first()
        if known is not None and known.start_step == start_step:
            return
        head.version += 1
        head.save()
        MetricCut.objects.update_or_create(
            run_id=run_id,
            attempt=attempt,
            defaults={"start_step": start_step, "version": head.version},
        )


def delete_run(run_id: UUID) -> None:
    """Forget all metrics of a run."""
    with transaction.atomic(savepoint=False):
        lock_head(run_id)
        segments = MetricSegment.objects.filter(series__run_id=run_id)
        MetricChunk.objects.filter(segment__in=segments)._raw_delete(using="default")
        segments.delete()
        for model in (MetricSeries, MetricTail, MetricCut, MetricHead):
            model.objects.filter(run_id=run_id).delete()


def lock_head(run_id: UUID) -> MetricHead:
    """The run's head row, made when missing, locked until the transaction ends."""
    heads = MetricHead.objects.select_for_update()
    head = heads.filter(pk=run_id).first()
    if head is None:
        MetricHead.objects.bulk_create([MetricHead(run_id=run_id)], ignore_conflicts=True)
        head = heads.get(pk=run_id)
    return head


def usable_key(key: str) -> str | None:
    """A metric's name in normal form, or None when it cannot be one."""
    key = unicodedata.normalize("NFC", key)
    try:
        size = len(key.encode())
    except UnicodeEncodeError:
        return None
    if not 0 < size <= MAX_KEY_BYTES or any(unicodedata.category(c) == "Cc" for c in key):
        return None
    return key


def _entries(run_id: UUID, points: Sequence[MetricPoint]) -> tuple[Structured, int]:
    """All points as one array with series ids, and how many had to be refused."""
    names = {name: usable_key(name) for name in dict.fromkeys(n for p in points for n in p.values)}
    ids = _series_ids(run_id, [key for key in names.values() if key is not None])
    rows = []
    refused = 0
    for point in points:
        t = _microseconds(point.t)
        for name, value in point.values.items():
            series = ids.get(names[name] or "")
            if series is None or abs(point.step) > MAX_STEP:
                refused += 1
            else:
                rows.append((series, point.step, t, value))
    return np.array(rows, ENTRY), refused


def _microseconds(t: float) -> int:
    """A time as whole microseconds; 0 for what is no time."""
    return round(t * 1e6) if abs(t) < 1e12 else 0


def _series_ids(run_id: UUID, keys: Sequence[str]) -> dict[str, int]:
    """Ids of series by key, new ones made while the run has room for them."""
    known = dict(MetricSeries.objects.filter(run_id=run_id).values_list("key", "id"))
    missing = [key for key in dict.fromkeys(keys) if key not in known]
    made = MetricSeries.objects.bulk_create(
        MetricSeries(run_id=run_id, key=key) for key in missing[: max(0, MAX_KEYS - len(known))]
    )
    return known | {series.key: series.pk for series in made}


def _store(head: MetricHead, attempt: int, entries: Structured) -> None:
    """Put one write into the tail, or into chunks where the tail is no place for it."""
    if attempt < head.attempt:
        _into_chunks(head, attempt, {}, split_entries(entries, head.version))
        return
    if attempt > head.attempt:
        _flush(head)
        head.attempt, head.last_step = attempt, None
    grows = head.last_step is None or entries["step"].min() > head.last_step
    has_room = head.tail_rows + 1 < TAIL_ROWS and head.tail_points + len(entries) < TAIL_POINTS
    top = int(entries["step"].max())
    head.last_step = top if head.last_step is None else max(head.last_step, top)
    if has_room and (grows or _grows_each_series(head, entries)):
        write_tail(head.run_id, head.version, entries)
        head.tail_rows += 1
        head.tail_points += len(entries)
    else:
        _flush(head, split_entries(entries, head.version))


def _grows_each_series(head: MetricHead, entries: Structured) -> bool:
    """Whether the entries lie beyond the last step of each series they belong to."""
    fresh = split_entries(entries, head.version)
    last = dict(
        MetricSegment.objects.filter(
            series_id__in=list(fresh), attempt=head.attempt, n__gt=0
        ).values_list("series_id", "last_step")
    )
    tail = load_tail(head.run_id)
    last |= {series: int(points["step"][-1]) for series, points in tail.items()}
    return all(
        series not in last or points["step"][0] > last[series] for series, points in fresh.items()
    )


def _flush(head: MetricHead, fresh: dict[int, Structured] | None = None) -> None:
    """Move the tail, and one more write, into chunks."""
    tail = load_tail(head.run_id) if head.tail_rows else {}
    _into_chunks(head, head.attempt, tail, fresh or {})
    if head.tail_rows:
        MetricTail.objects.filter(run_id=head.run_id).delete()
    head.tail_rows = head.tail_points = 0


def _into_chunks(
    head: MetricHead, attempt: int, tail: dict[int, Structured], fresh: dict[int, Structured]
) -> None:
    """Write the tail and a fresh write into chunks; note the series whose past changed."""
    joined = join_tails([tail, fresh])
    segments = _segments(attempt, list(joined))
    replaced = _replaced_in_tail(tail, fresh, joined)
    additions = []
    for series, points in joined.items():
        segment = segments[series]
        if segment.n == 0 or points["step"][0] > segment.last_step:
            additions.append(pyramid.Addition(segment, points))
            if attempt < head.attempt:
                replaced.setdefault(series, 0)
        elif (count := pyramid.rewrite(segment, points)) is not None:
            replaced[series] = replaced.get(series, 0) + count
    pyramid.extend(additions)
    for series, count in replaced.items():
        MetricSeries.objects.filter(pk=series).update(
            changed_version=head.version, rewritten=F("rewritten") + count
        )


def _replaced_in_tail(
    tail: dict[int, Structured], fresh: dict[int, Structured], joined: dict[int, Structured]
) -> dict[int, int]:
    """How many points of the tail each fresh series replaces, where it is not only added behind."""
    return {
        series: len(tail[series]) + len(points) - len(joined[series])
        for series, points in fresh.items()
        if series in tail
        and points["step"][0] <= tail[series]["step"][-1]
        and not same_points(joined[series], tail[series])
    }


def _segments(attempt: int, series: Sequence[int]) -> dict[int, MetricSegment]:
    """The segment of each series in one attempt, made when missing."""
    MetricSegment.objects.bulk_create(
        [MetricSegment(series_id=pk, attempt=attempt) for pk in series], ignore_conflicts=True
    )
    found = MetricSegment.objects.filter(series_id__in=series, attempt=attempt)
    return {segment.series_id: segment for segment in found}
