"""Compare a drilled run with an undisturbed one: points, weights, evaluations.

Called by `fault_drill.py`.
"""

from __future__ import annotations

import hashlib
import struct
from pathlib import Path
from typing import Any, NamedTuple

from training_core.contract.metrics import is_wall_clock


class Difference(NamedTuple):
    """How far a run is from the undisturbed one."""

    gaps: int
    """Points that are missing."""
    duplicates: int
    """Steps that stand twice in a series."""
    unequal_points: int
    """Points whose value differs in any bit, or that should not be there."""
    unequal_weights: bool
    """Whether the last checkpoint's weights differ."""


def read_all_series(run_id: Any) -> dict[str, list[tuple[int, float]]]:
    """Every series of a run that does not depend on the machine's speed."""
    from webapp.metrics.models import MetricSeries  # noqa: PLC0415 - after django.setup()
    from webapp.metrics.read import read_series  # noqa: PLC0415

    keys = MetricSeries.objects.filter(run_id=run_id).values_list("key", flat=True)
    return {key: read_series(run_id, key) for key in sorted(keys) if not is_wall_clock(key)}


def compare(
    undisturbed: dict[str, list[tuple[int, float]]],
    drilled: dict[str, list[tuple[int, float]]],
    weights: tuple[Path, Path],
) -> Difference:
    """Count what differs."""
    gaps = duplicates = unequal = 0
    for key in undisturbed.keys() | drilled.keys():
        wanted, found = undisturbed.get(key, []), drilled.get(key, [])
        steps = [step for step, _ in found]
        duplicates += len(steps) - len(set(steps))
        values = dict(found)
        expected = dict(wanted)
        gaps += len(expected.keys() - values.keys())
        unequal += len(values.keys() - expected.keys())
        unequal += sum(
            _bits(values[step]) != _bits(value)
            for step, value in expected.items()
            if step in values
        )
    first, second = weights
    return Difference(gaps, duplicates, unequal, _digest(first) != _digest(second))


def newest_weights(run_dir: Path) -> Path:
    """The weights of the last checkpoint."""
    return max((run_dir / "checkpoints").glob("step-*")) / "model.safetensors"


def _bits(value: float) -> bytes:
    """A float as its bits, so that NaN equals NaN and -0.0 differs from 0.0."""
    return struct.pack("<d", value)


def _digest(path: Path) -> str:
    """SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
