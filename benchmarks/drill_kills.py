"""The kills of the fault drill, each at a moment that it proves.

Called by `fault_drill.py`. A trainer is stopped with SIGSTOP as soon as its phase log says that it
is where the kill is wanted; only if the log still ends there is it killed, else it goes on and the
next chance is taken. A checkpoint's rename is proved by the files: all are there under the name
that they are written under, the manifest too, and the checkpoint is not. The ingest transaction is
held open by a lock of the drill's own, so that the worker is certain to be inside it.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import psycopg

from training_core.contract.rundir import whole_lines

POLL_S = 0.0005
WAIT_LIMIT_S = 240
WAITING_FOR_TABLE = """
    SELECT pid FROM pg_stat_activity
    WHERE wait_event_type = 'Lock' AND query ILIKE '%%metrics_metric%%' AND pid <> pg_backend_pid()
"""


class Kill(NamedTuple):
    """One kill that happened."""

    kind: str
    """Where it hit: `rollout`, `update`, `checkpoint`, `ingest`, `worker`."""
    step: int
    """Step that was being worked on."""
    proof: str
    """What shows that it hit there."""


class Target(NamedTuple):
    """The run that is drilled."""

    run_id: Any
    run_dir: Path
    database_url: str
    worker_pid: Callable[[], int]


def kill_trainer_inside(target: Target, attempt: int, phase: str, from_step: int) -> Kill | None:
    """SIGKILL the trainer inside a phase at or after a step; None when it finished before that."""
    events = target.run_dir / "attempts" / str(attempt) / "events.jsonl"
    pid = _trainer_pid(events)
    deadline = time.monotonic() + WAIT_LIMIT_S
    seen = 0
    while time.monotonic() < deadline:
        size = events.stat().st_size
        if size == seen:
            if not psutil.pid_exists(pid):
                return None
            time.sleep(POLL_S)
            continue
        seen = size
        if _is_inside(_last_events(events), phase, from_step):
            kill = _stop_and_kill(events, pid, phase, from_step)
            if kill:
                return kill
    raise SystemExit(f"no {phase} phase at step {from_step} within {WAIT_LIMIT_S} s")


def kill_trainer_before_rename(target: Target, attempt: int, from_step: int) -> Kill | None:
    """SIGKILL the trainer when a checkpoint is written, not renamed; None when it finished."""
    pid = _trainer_pid(target.run_dir / "attempts" / str(attempt) / "events.jsonl")
    deadline = time.monotonic() + WAIT_LIMIT_S
    while time.monotonic() < deadline:
        step = _step_before_rename(target.run_dir, pid)
        if step is None or step < from_step:
            if not psutil.pid_exists(pid):
                return None
            time.sleep(POLL_S / 2)
            continue
        try:
            os.kill(pid, signal.SIGSTOP)
            if _step_before_rename(target.run_dir, pid) == step:
                os.kill(pid, signal.SIGKILL)
                proof = f"step {step}: its manifest is written, its directory not renamed"
                return Kill("checkpoint", step, proof)
            os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            continue
    raise SystemExit(f"no checkpoint before its rename at step {from_step} in {WAIT_LIMIT_S} s")


def _step_before_rename(run_dir: Path, pid: int) -> int | None:
    """Step of the checkpoint that this trainer has written and not renamed, if there is one."""
    folder = run_dir / "checkpoints"
    for manifest in folder.glob(f".tmp-step-*-{pid}/manifest.json"):
        name = manifest.parent.name.removeprefix(".tmp-").removesuffix(f"-{pid}")
        if not (folder / name).exists():
            return int(name.removeprefix("step-"))
    return None


def kill_worker_inside_ingest(target: Target) -> Kill:
    """SIGKILL the worker while it waits inside the ingest transaction for a lock of ours."""
    with psycopg.connect(target.database_url) as holder:
        holder.execute("LOCK TABLE metrics_metrictail, metrics_metricchunk IN SHARE MODE")
        with psycopg.connect(target.database_url, autocommit=True) as watcher:
            deadline = time.monotonic() + WAIT_LIMIT_S
            while not (rows := watcher.execute(WAITING_FOR_TABLE).fetchall()):
                if time.monotonic() > deadline:
                    raise SystemExit("no ingest transaction came to the lock")
                time.sleep(0.005)
            os.kill(target.worker_pid(), signal.SIGKILL)
        holder.rollback()
    return Kill("ingest", 0, f"backend {rows[0][0]} waited for our lock on the metric tables")


def kill_worker(target: Target) -> Kill:
    """SIGKILL the worker at no particular moment."""
    pid = target.worker_pid()
    os.kill(pid, signal.SIGKILL)
    return Kill("worker", 0, f"worker process {pid}")


def _stop_and_kill(events: Path, pid: int, phase: str, from_step: int) -> Kill | None:
    """Freeze, look again, then kill or let go."""
    try:
        os.kill(pid, signal.SIGSTOP)
        ending = _last_events(events)
        if _is_inside(ending, phase, from_step):
            os.kill(pid, signal.SIGKILL)
            last = ending[-1]
            proof = f"last event: step {last['step']}, {phase} {last['done']}/{last['total']}"
            return Kill(phase, last["step"], proof)
        os.kill(pid, signal.SIGCONT)
    except ProcessLookupError:
        pass
    return None


def _is_inside(ending: list[dict[str, Any]], phase: str, from_step: int) -> bool:
    """Whether the log ends inside the wanted phase.

    An update says 0 of 0 when it begins, and says it again when it ends without a group to learn
    from.
    """
    last = ending[-1] if ending else {}
    if last.get("kind") != "phase" or last["phase"] != phase or last["step"] < from_step:
        return False
    if last["total"]:
        return bool(last["done"] < last["total"])
    before = ending[-2] if len(ending) > 1 else {}
    return (before.get("phase"), before.get("step")) != (phase, last["step"])


def _last_events(events: Path) -> list[dict[str, Any]]:
    """The last two whole lines of the log."""
    with events.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 65_536))
        lines = file.read().split(b"\n")
    return [json.loads(line) for line in lines[-3:-1]]


def _trainer_pid(events: Path) -> int:
    """Process id that the attempt tells when it has started."""
    deadline = time.monotonic() + WAIT_LIMIT_S
    while time.monotonic() < deadline:
        for _, line in whole_lines(events):
            event = json.loads(line)
            if event["kind"] == "attempt_started":
                return int(event["pid"])
        time.sleep(0.02)
    raise SystemExit(f"{events}: no attempt started within {WAIT_LIMIT_S} s")
