"""Kill everything, many times, and compare with a run that nobody disturbed.

    python benchmarks/fault_drill.py [--quick]

Starts the whole product. One run is left alone; others with the same spec are killed inside
rollouts, optimiser steps, checkpoint renames and ingest transactions, their workers are killed,
Valkey is flushed and restarted, PostgreSQL restarted. Each run must succeed by itself, and each
series and the weights must equal the undisturbed run's bit for bit. A kill that forced no redone
work does not count as one. `--quick` makes 5 kills instead of 24 and says so in the result.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import psutil

from benchmarks import drill_kills
from benchmarks.drill_compare import Difference, compare, newest_weights, read_all_series
from benchmarks.drill_kills import Kill, Target
from benchmarks.stack import Stack, running_stack
from training_core.contract.presets import TINY_COPY
from training_core.contract.rewards import (
    CorrectnessReward,
    LengthReward,
    RewardSpec,
    WeightedSumReward,
    WeightedTerm,
)
from training_core.contract.spec import RunSpec
from training_core.contract.stages import RlStage, SftStage
from webapp.launcher import paths

RUN_LIMIT_S = 900
TERMINAL = {"succeeded", "failed", "stopped"}
SFT_STEPS, RL_STEPS, SAVE_EVERY = 8, 40, 6

FULL_PLAN: tuple[tuple[str, ...], ...] = (
    ("rollout", "update", "checkpoint", "ingest"),
    ("checkpoint", "rollout", "ingest", "update"),
    ("update", "worker", "checkpoint", "rollout"),
    ("ingest", "update", "rollout", "checkpoint"),
    ("valkey", "rollout", "worker", "update", "checkpoint"),
    ("postgres", "ingest", "flush", "worker"),
    ("worker", "ingest"),
)
QUICK_PLAN: tuple[tuple[str, ...], ...] = (
    ("rollout", "update", "valkey", "checkpoint"),
    ("ingest", "worker", "postgres"),
)
ENGINE_FAULTS = {"valkey", "flush", "postgres"}


def drill_spec(name: str) -> RunSpec:
    """A tiny run with everything in it, on one thread.

    So few steps of warm-up teach no format; a reward for shorter replies gives each update a
    gradient, without which equal weights would prove nothing.
    """
    base = TINY_COPY.spec
    stages = tuple(
        stage.model_copy(
            update={
                "steps": SFT_STEPS if isinstance(stage, SftStage) else RL_STEPS,
                "optimiser": stage.optimiser.model_copy(update={"learning_rate": rate}),
            }
        )
        for stage, rate in zip(base.stages, (1e-3, 1e-5), strict=True)
        if isinstance(stage, SftStage | RlStage)
    )
    return base.model_copy(
        update={
            "name": name,
            "stages": stages,
            "reward": RewardSpec(
                root=WeightedSumReward(
                    terms=(
                        WeightedTerm(weight=1.0, node=CorrectnessReward()),
                        WeightedTerm(
                            weight=0.5, node=LengthReward(target_tokens=0, limit_tokens=32)
                        ),
                    )
                )
            ),
            "checkpoint": base.checkpoint.model_copy(update={"interval_steps": SAVE_EVERY}),
            "evaluation": base.evaluation.model_copy(update={"interval_steps": 15}),
            "resources": base.resources.model_copy(update={"threads": 1, "max_attempts": 20}),
        }
    )


def launch(name: str) -> Any:
    """Launch one run as the launch page does."""
    from webapp.accounts.services import ensure_owner  # noqa: PLC0415 - after django.setup()
    from webapp.runs.services import launch_run  # noqa: PLC0415

    return launch_run(owner=ensure_owner(), spec=drill_spec(name))


def wait_for(run: Any, states: set[str], newer_than_attempt: int = 0) -> None:
    """Until the run is in one of the states (in a newer attempt)."""
    deadline = time.monotonic() + RUN_LIMIT_S
    while time.monotonic() < deadline:
        refresh(run)
        if run.state in states and (run.attempt > newer_than_attempt or run.state in TERMINAL):
            return
        time.sleep(0.1)
    raise SystemExit(f"{run.name}: still {run.state} in attempt {run.attempt}")


def refresh(run: Any) -> None:
    """Read the row, across restarts of PostgreSQL."""
    from django.db import Error, connection  # noqa: PLC0415 - after django.setup()

    for _ in range(100):
        try:
            run.refresh_from_db()
        except Error:
            connection.close()
            time.sleep(0.3)
        else:
            return
    raise SystemExit("the database did not come back")


def train_worker_pid() -> int:
    """The process that supervises runs."""
    from webapp.workers_page.models import Worker  # noqa: PLC0415 - after django.setup()

    return int(Worker.objects.get(name__startswith="train@").pid)


def disturb_engine(stack: Stack, fault: str) -> None:
    """Restart or flush an engine; training goes on, so nothing is redone."""
    import redis  # noqa: PLC0415 - only here

    if fault == "flush":
        redis.Redis.from_url(paths.redis_url()).flushall()
        return
    name = "valkey" if fault == "valkey" else "postgres"
    for process in psutil.Process(stack.process.pid).children(recursive=True):
        command = process.cmdline()
        if command and name in Path(command[0]).name:
            process.send_signal(signal.SIGQUIT if name == "postgres" else signal.SIGKILL)
            return
    raise SystemExit(f"{name} is not running")


def strike(stack: Stack, run: Any, kind: str, from_step: int) -> Kill | None:
    """One fault; the kill when there was one."""
    target = Target(run.pk, run.run_dir.root, paths.database_url(), train_worker_pid)
    if kind in ENGINE_FAULTS:
        disturb_engine(stack, kind)
        return None
    if kind in {"ingest", "worker"}:
        while run.step < from_step and run.state not in TERMINAL:
            time.sleep(0.05)
            refresh(run)
    if kind == "ingest":
        return drill_kills.kill_worker_inside_ingest(target)
    if kind == "worker":
        return drill_kills.kill_worker(target)
    if kind == "checkpoint":
        return drill_kills.kill_trainer_before_rename(target, run.attempt, from_step)
    return drill_kills.kill_trainer_inside(target, run.attempt, kind, from_step)


def forced_redone_work(run: Any, attempt: int) -> bool:
    """Whether the next attempt started before what this one had begun."""
    from webapp.runs.models import Attempt  # noqa: PLC0415 - after django.setup()

    following = Attempt.objects.get(run=run, number=attempt + 1)
    begun = 0
    for line in run.run_dir.events_file(attempt).read_bytes().splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if event.get("kind") in {"phase", "metrics"}:
            begun = max(begun, event["step"])
    return bool(begun > following.start_step)


def drill(stack: Stack, number: int, plan: tuple[str, ...]) -> tuple[Any, list[tuple[Kill, bool]]]:
    """One run with its faults, spread over its steps."""
    run = launch(f"drill {number}: {', '.join(plan)}")
    kills: list[tuple[Kill, bool]] = []
    spread = (SFT_STEPS + RL_STEPS - 4) // len(plan)
    for place, kind in enumerate(plan):
        wait_for(run, {"running"} | TERMINAL)
        attempt = run.attempt
        from_step = max(SFT_STEPS + 2, place * spread + 3)
        kill = strike(stack, run, kind, from_step)
        print(f"  {run.name[:9]}  {kind:<10} {kill.proof if kill else ''}", flush=True)
        if kill:
            wait_for(run, {"running"} | TERMINAL, newer_than_attempt=attempt)
            kills.append((kill, forced_redone_work(run, attempt)))
    wait_for(run, TERMINAL)
    return run, kills


def main() -> None:
    """Drill, compare, and end with the RESULT line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="5 kills instead of 24")
    options = parser.parse_args()
    started = time.monotonic()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with running_stack() as stack:
        quiet = launch("undisturbed")
        wait_for(quiet, TERMINAL)
        wanted = read_all_series(quiet.pk)
        idle = sum(norm == 0.0 for _, norm in wanted["grad_norm"])
        print(f"{idle} of {len(wanted['grad_norm'])} updates without a gradient", flush=True)
        if idle > RL_STEPS // 4:
            raise SystemExit("Too few updates with a gradient: equal weights would prove little.")
        rows = [
            drill(stack, n, p) for n, p in enumerate(QUICK_PLAN if options.quick else FULL_PLAN)
        ]
        differences = [
            compare(
                wanted,
                read_all_series(run.pk),
                (newest_weights(quiet.run_dir.root), newest_weights(run.run_dir.root)),
            )
            for run, _ in rows
        ]
        failed = sum(run.state != "succeeded" for run, _ in rows) + (quiet.state != "succeeded")
    report(rows, differences, wanted, failed, options.quick, time.monotonic() - started)


def report(
    rows: list[tuple[Any, list[tuple[Kill, bool]]]],
    differences: list[Difference],
    wanted: dict[str, list[tuple[int, float]]],
    failed: int,
    quick: bool,
    seconds: float,
) -> None:
    """A table for people and the RESULT line."""
    counted: dict[str, int] = {}
    for _, kills in rows:
        for kill, redone in kills:
            if redone:
                counted[kill.kind] = counted.get(kill.kind, 0) + 1
    print(f"\n{'run':<52}{'state':<11}{'gaps':>5}{'twice':>6}{'unequal':>8}  weights")
    for (run, _), difference in zip(rows, differences, strict=True):
        print(
            f"{run.name[:50]:<52}{run.state:<11}{difference.gaps:>5}{difference.duplicates:>6}"
            f"{difference.unequal_points:>8}  "
            f"{'differ' if difference.unequal_weights else 'equal'}"
        )
    print(f"kills that forced redone work: {counted}")
    result = {
        "quick": quick,
        "drills": sum(counted.values()),
        "by_kind": counted,
        "runs": len(rows),
        "points_compared": sum(len(points) for points in wanted.values()) * len(rows),
        "failed_runs": failed,
        "gaps": sum(d.gaps for d in differences),
        "duplicates": sum(d.duplicates for d in differences),
        "unequal_points": sum(d.unequal_points for d in differences),
        "unequal_weights": sum(d.unequal_weights for d in differences),
        "seconds": round(seconds),
    }
    print("RESULT " + json.dumps(result))


if __name__ == "__main__":
    main()
