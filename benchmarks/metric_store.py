"""The metric store alone: how fast points go in, and how reading depends on how many there are.

    python benchmarks/metric_store.py [--quick]

Runs on a PostgreSQL of its own with fsync on, in one process. A read is everything between the
question and the JSON that a browser gets, without HTTP; the window is the whole series, the budget
1,500 points. Values are a random walk with three planted spikes of one step, a NaN and an infinity.
The last line is RESULT and a JSON object.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import django
import numpy as np
from django.apps import apps
from django.core.management import call_command

from webapp.launcher.postgres import EmbeddedPostgres

SIZES = (10_000, 100_000, 1_000_000)
QUICK_SIZES = (10_000, 100_000)
SPIKES = (1_000.0, 2_000.0, 3_000.0)
BATCH = 5_000
READS = 40
KEYS_A_STEP = 30
STEPS = 1_000


def values_of(size: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The series of one size."""
    rng = np.random.default_rng(size)
    values = np.cumsum(rng.normal(size=size)) * 0.01
    for i, spike in enumerate(SPIKES):
        values[size * (i + 1) // 5 + 7] = spike
    values[size // 2], values[size // 3] = math.nan, math.inf
    return values


def new_run(number: int) -> Any:
    """A run to write to."""
    user, _ = apps.get_model("accounts", "User").objects.get_or_create(username="bench")
    return apps.get_model("runs", "Run").objects.create(
        number=number, name="bench", owner=user, spec={}, spec_version=1, total_steps=1
    )


def measure_size(size: int) -> dict[str, Any]:
    """Write and read one series."""
    from webapp.metrics.models import MetricChunk  # noqa: PLC0415 - after django.setup
    from webapp.metrics.services import MetricPoint, append_points  # noqa: PLC0415

    run, values = new_run(size), values_of(size)
    started = time.perf_counter()
    for first in range(0, size, BATCH):
        part = values[first : first + BATCH].tolist()
        points = [MetricPoint(first + i, 1.7e9 + first + i, {"x": v}) for i, v in enumerate(part)]
        append_points(run.pk, 1, points)
    seconds = time.perf_counter() - started
    chunks = MetricChunk.objects.filter(segment__series__run=run).values_list("packed", flat=True)
    return {
        "points_per_s": round(size / seconds),
        "bytes_per_point": round(sum(map(len, chunks)) / size, 2),
        **{f"read_{k}": v for k, v in measure_reads(run.pk, 0.0).items()},
        **{f"smoothed_{k}": v for k, v in measure_reads(run.pk, 0.6).items() if k != "spikes"},
    }


def measure_reads(run_id: Any, weight: float) -> dict[str, Any]:
    """Times of reading the whole series, and whether its spikes are drawn."""
    from webapp.metrics import wire  # noqa: PLC0415
    from webapp.metrics.curves import CurveQuery  # noqa: PLC0415
    from webapp.metrics.read import read_curves  # noqa: PLC0415

    query = CurveQuery((run_id,), ("x",), weight=weight)
    times_ms = []
    for _ in range(READS):
        started = time.perf_counter()
        answer = read_curves(query)
        wire.encode(query, answer)
        times_ms.append((time.perf_counter() - started) * 1e3)
    drawn = answer.curves[0].line.y
    return {
        "p50_ms": round(float(np.percentile(times_ms, 50)), 2),
        "p95_ms": round(float(np.percentile(times_ms, 95)), 2),
        "spikes": sum(spike in drawn for spike in SPIKES),
    }


def measure_steps() -> float:
    """Milliseconds to store one step of a live run, commit included."""
    from webapp.metrics.services import MetricPoint, append_points  # noqa: PLC0415

    run = new_run(1)
    started = time.perf_counter()
    for step in range(STEPS):
        values = {f"key{i}": float(step) for i in range(KEYS_A_STEP)}
        append_points(run.pk, 1, [MetricPoint(step, 1.7e9 + step, values)])
    return (time.perf_counter() - started) / STEPS * 1e3


def main() -> None:
    """Measure, print, and end with the RESULT line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--quick", action="store_true", help="without the million points")
    sizes = QUICK_SIZES if parser.parse_args().quick else SIZES
    home = Path(tempfile.mkdtemp(prefix="temper-bench-"))
    os.environ |= {"TEMPER_DATA_DIR": str(home), "DJANGO_SETTINGS_MODULE": "webapp.settings"}
    for name in ("DATABASE_URL", "REDIS_URL"):
        os.environ.pop(name, None)
    postgres = EmbeddedPostgres(home)
    try:
        postgres.start()
        django.setup()
        call_command("migrate", verbosity=0)
        rows = {size: measure_size(size) for size in sizes}
        step_ms = measure_steps()
    finally:
        postgres.stop()
        shutil.rmtree(home, ignore_errors=True)
    for size, row in rows.items():
        print(f"{size:>9,} points:", ", ".join(f"{name} {value}" for name, value in row.items()))
    print(f"one step of {KEYS_A_STEP} metrics: {step_ms:.2f} ms")
    first, last = rows[sizes[0]], rows[sizes[-1]]
    result = {
        **{f"{name}_{size}": value for size, row in rows.items() for name, value in row.items()},
        "read_ratio": round(last["read_p50_ms"] / first["read_p50_ms"], 2),
        "step_ms": round(step_ms, 2),
    }
    print("RESULT " + json.dumps(result))


if __name__ == "__main__":
    main()
