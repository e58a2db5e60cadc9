"""The tail of a run's metric log: writes that are not in chunks yet.

Written by `services.append_points`, read together with the chunks by `read`. One row a write, with
the points of all series in it. Inside the tail each series only grows: whatever would rewrite a
step goes to the chunks at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

import numpy as np

from webapp.metrics.arrays import POINT, Structured, empty_points, merge_points
from webapp.metrics.codec import pack, unpack
from webapp.metrics.models import MetricTail

INLINE_ENTRIES = 60
"""Beyond these a row would leave PostgreSQL's page, and packing pays."""

ENTRY = np.dtype([("series", "<i8"), ("step", "<i8"), ("t", "<i8"), ("value", "<f8")])


def write_tail(run_id: UUID, version: int, entries: Structured) -> None:
    """Store one write."""
    MetricTail.objects.create(
        run_id=run_id,
        version=version,
        n=len(entries),
        packed=pack(entries, compact=len(entries) > INLINE_ENTRIES),
    )


def load_tail(*run_ids: UUID) -> dict[int, Structured]:
    """Points of the whole tail of runs by series id, sorted by step."""
    parts: dict[int, list[Structured]] = {}
    rows = MetricTail.objects.filter(run_id__in=run_ids).order_by("run_id", "version")
    for version, n, packed in rows.values_list("version", "n", "packed"):
        for series, points in split_entries(unpack(packed, ENTRY, n), version).items():
            parts.setdefault(series, []).append(points)
    return {series: np.concatenate(found) for series, found in parts.items()}


def split_entries(entries: Structured, version: int) -> dict[int, Structured]:
    """Entries of one write as points by series id; sorted, each step once, the later entry wins."""
    order = np.argsort(entries["series"], kind="stable")
    sorted_entries = entries[order]
    ids, starts = np.unique(sorted_entries["series"], return_index=True)
    found = {}
    for series, part in zip(ids.tolist(), np.split(sorted_entries, starts[1:]), strict=True):
        points = np.zeros(len(part), POINT)
        for name in ("step", "t", "value"):
            points[name] = part[name]
        points["version"] = version
        found[series] = merge_points(empty_points(), points)
    return found


def join_tails(tails: Iterable[dict[int, Structured]]) -> dict[int, Structured]:
    """Several writes as one, by series; the later write wins."""
    joined: dict[int, Structured] = {}
    for tail in tails:
        for series, points in tail.items():
            joined[series] = merge_points(joined.get(series, empty_points()), points)
    return joined
