"""The store's behaviour in plain Python, to compare the real one with."""

from __future__ import annotations

import math
from collections import defaultdict

from webapp.metrics.services import MetricPoint

Points = dict[int, tuple[float, float]]


class PlainStore:
    """Points of one run as dictionaries: attempt -> key -> step -> (t, value)."""

    def __init__(self) -> None:
        self.points: dict[int, dict[str, Points]] = defaultdict(lambda: defaultdict(dict))
        self.cuts: dict[int, int] = {}

    def append(self, attempt: int, points: list[MetricPoint]) -> None:
        for point in points:
            for key, value in point.values.items():
                self.points[attempt][key][point.step] = (point.t, value)

    def supersede(self, attempt: int, start_step: int) -> None:
        self.cuts[attempt] = start_step

    def live(self, key: str) -> list[tuple[int, float]]:
        found = []
        for attempt in sorted(self.points):
            steps = self.points[attempt].get(key, {})
            later = [a for a in self.points if a > attempt and self.points[a].get(key)]
            ends = [cut for a, cut in self.cuts.items() if a > attempt]
            ends += [min(self.points[a][key]) - 1 for a in later]
            end = min(ends, default=math.inf)
            found += [(step, steps[step][1]) for step in sorted(steps) if step <= end]
        return found


def bits(points: list[tuple[int, float]]) -> list[tuple[int, str]]:
    """Points that compare equal when they are equal bit for bit, NaN and -0.0 included."""
    return [(step, value.hex()) for step, value in points]
