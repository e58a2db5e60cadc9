"""Small runs of the tiny model: in this process, or as the real trainer process.

The spec has an sft stage of 4 steps and an rl stage of 8; the warm-up teaches short replies, so
that rewards (length, in the main) differ inside groups and every rl step has a gradient. A run
takes about a second. `Trainer` starts `python -m workers.trainer_main` as a supervisor does; it can
be held at an exact point by a FIFO in the place of a rollout file.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from training_core.contract.algorithms import DivergenceSpec, GrpoSpec
from training_core.contract.control import Command, ControlCommand
from training_core.contract.domains import ReasoningGymDomain
from training_core.contract.events import EVENT, Event, EventHead, MetricsLogged
from training_core.contract.metrics import is_wall_clock
from training_core.contract.rewards import (
    CorrectnessReward,
    LengthReward,
    RewardSpec,
    WeightedSumReward,
    WeightedTerm,
)
from training_core.contract.rundir import RunDir, whole_lines
from training_core.contract.spec import (
    TINY_MODEL,
    CheckpointSpec,
    EvaluationSpec,
    ModelSpec,
    ResourceSpec,
    RunSpec,
)
from training_core.contract.stages import (
    OptimiserSpec,
    RlStage,
    SamplingSpec,
    SftStage,
)
from training_core.monitors.jsonl import EventLog
from training_core.monitors.steering import Steering
from workers.trainer_main import Ending, run_attempt

ROOT = Path(__file__).resolve().parents[3]
PATIENCE_S = 90
"""Longest wait for a process on a busy machine; nothing is asserted about time."""

ADDITION = ReasoningGymDomain(
    name="math/add",
    generator="basic_arithmetic",
    params={
        "min_terms": 2,
        "max_terms": 2,
        "min_digits": 1,
        "max_digits": 1,
        "operators": ("+",),
        "allow_parentheses": False,
    },
    demonstration_template="{answer}",
    held_out_items=6,
)
REWARD = RewardSpec(
    root=WeightedSumReward(
        terms=(
            WeightedTerm(weight=1.0, node=CorrectnessReward(answer_tag="")),
            WeightedTerm(weight=0.5, node=LengthReward(target_tokens=1, limit_tokens=6)),
        )
    )
)
SFT = SftStage(steps=4, batch_size=4, optimiser=OptimiserSpec(learning_rate=5e-3))
RL = RlStage(
    steps=8,
    prompts_per_step=3,
    group_size=4,
    sampling=SamplingSpec(max_new_tokens=6, temperature=0.9),
    optimiser=OptimiserSpec(learning_rate=1e-3, decay="linear", warmup_steps=2),
    algorithm=GrpoSpec(
        inner_epochs=2,
        divergence=DivergenceSpec(coefficient=0.02, target_nats=0.05, horizon_rollouts=100),
    ),
)
STEPS = SFT.steps + RL.steps


def small_spec(**changes: Any) -> RunSpec:
    """12 steps, evaluations at 0, 4, 7, 10 and 12, checkpoints at 3, 4, 6, 9 and 12.

    Short replies count as success, so that pass@1 is neither 0 nor 1 throughout.
    """
    fields: dict[str, Any] = {
        "name": "small",
        "model": ModelSpec(ref=TINY_MODEL),
        "domains": (ADDITION,),
        "reward": REWARD,
        "stages": (SFT, RL),
        "evaluation": EvaluationSpec(
            interval_steps=3,
            max_new_tokens=6,
            temperature=0.9,
            success_reward="length",
            success_threshold=-0.2,
        ),
        "checkpoint": CheckpointSpec(interval_steps=3, keep_best=False),
        "resources": ResourceSpec(threads=1),
    }
    return RunSpec(**(fields | changes))


def new_run(root: Path, spec: RunSpec | None = None) -> RunDir:
    """A run directory before its first attempt."""
    run_dir = RunDir(root)
    run_dir.write_spec(spec or small_spec())
    return run_dir


class ListeningLog(EventLog):
    """The real log, with somebody who hears of each event after it was written."""

    def __init__(self, path: Path, listener: Callable[[Event], None]) -> None:
        super().__init__(path)
        self._path = path
        self._listener = listener

    def emit(self, kind: type[EventHead], **fields: Any) -> None:
        super().emit(kind, **fields)
        last = self._path.read_bytes().splitlines()
        if last:
            self._listener(EVENT.validate_json(last[-1]))


def run_here(
    run_dir: RunDir, attempt: int = 1, listener: Callable[[Event], None] | None = None
) -> Ending:
    """One attempt in this process, from its first event to its ending."""
    token = 100 + attempt
    run_dir.write_owner(attempt, token)
    path = run_dir.events_file(attempt)
    log = ListeningLog(path, listener) if listener else EventLog(path)
    try:
        return run_attempt(run_dir, log, Steering(run_dir, attempt), attempt=attempt, token=token)
    finally:
        log.close()


class Trainer:
    """A trainer process, with this process as its supervisor."""

    def __init__(self, run_dir: RunDir, attempt: int = 1) -> None:
        self.run_dir, self.attempt = run_dir, attempt
        run_dir.write_owner(attempt, 100 + attempt)
        run_dir.attempt(attempt).mkdir(parents=True, exist_ok=True)
        with run_dir.console_file(attempt).open("wb") as console:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "workers.trainer_main", str(run_dir.root)),
                    *("--attempt", str(attempt), "--token", str(100 + attempt)),
                ],
                cwd=ROOT,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
                stdin=subprocess.PIPE,
                stdout=console,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait(self) -> int:
        """Its exit code."""
        try:
            return self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise

    def wait_for(self, condition: Callable[[Event], bool]) -> Event:
        """The first event that fulfils a condition."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            ended = self.process.poll() is not None
            found = next(filter(condition, read_events(self.run_dir, self.attempt)), None)
            if found is not None:
                return found
            if ended:
                break
            time.sleep(0.01)
        raise AssertionError(self.run_dir.console_file(self.attempt).read_text()[-3000:])

    def wait_for_step(self, step: int) -> None:
        """Until the metrics of that step are logged."""
        self.wait_for(lambda event: isinstance(event, MetricsLogged) and event.step >= step)


def hold_at(run_dir: RunDir, attempt: int, step: int) -> Path:
    """Make that attempt wait in that rl step, after sampling and before the update.

    Opening the FIFO for writing blocks until somebody reads: `released`, or a kill.
    """
    path = run_dir.rollout_file(attempt, "train", step)
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(path)
    return path


@contextmanager
def released(fifo: Path) -> Iterator[None]:
    """Let a held attempt go on; what it writes stays in the pipe's buffer."""
    handle = os.open(fifo, os.O_RDWR)
    try:
        yield
    finally:
        os.close(handle)


def ask(run_dir: RunDir, command: Command, *, attempt: int = 1, name: str = "") -> str:
    """Append a command as the supervisor does; its id."""
    control_id = name or f"{command}-{attempt}"
    run_dir.append_control(
        ControlCommand(id=control_id, attempt=attempt, t=1.0, command=command, actor="somebody")
    )
    return control_id


def read_events(run_dir: RunDir, attempt: int = 1) -> list[Event]:
    """All whole events of an attempt."""
    return [EVENT.validate_json(line) for _, line in whole_lines(run_dir.events_file(attempt))]


def of_kind(events: list[Event], kind: str) -> list[Any]:
    """Events of one kind."""
    return [event for event in events if event.kind == kind]


def live_events(run_dir: RunDir) -> list[Event]:
    """Events of all attempts, without what a later attempt did again."""
    found: list[Event] = []
    for attempt in run_dir.attempts():
        events = read_events(run_dir, attempt)
        (start,) = of_kind(events, "attempt_started")
        kept = -1 if start.checkpoint is None else start.start_step
        found = [event for event in found if getattr(event, "step", 0) <= kept]
        found += events
    return found


def metric_rows(run_dir: RunDir) -> dict[tuple[int, str], list[str]]:
    """(step, metric) to its live values as written, for metrics that repeat exactly."""
    rows: dict[tuple[int, str], list[str]] = {}
    for event in of_kind(live_events(run_dir), "metrics"):
        for name, value in event.values.items():
            if not is_wall_clock(name):
                rows.setdefault((event.step, name), []).append(repr(value))
    return rows


def evaluation_rows(run_dir: RunDir) -> list[dict[str, Any]]:
    """Live evaluations without what depends on the clock."""
    rows = [json.loads(e.model_dump_json()) for e in of_kind(live_events(run_dir), "evaluation")]
    return [{k: v for k, v in row.items() if k not in {"seq", "t", "seconds"}} for row in rows]


def final_files(run_dir: RunDir, step: int = STEPS) -> dict[str, bytes]:
    """Weights and optimiser state of a checkpoint, as bytes."""
    path = run_dir.checkpoint(step)
    return {
        name: (path / name).read_bytes() for name in ("model.safetensors", "optimiser.safetensors")
    }


def assert_same_run(found: RunDir, expected: RunDir) -> None:
    """Weights, metrics and evaluations are equal, bit for bit."""
    assert metric_rows(found) == metric_rows(expected)
    assert evaluation_rows(found) == evaluation_rows(expected)
    assert final_files(found) == final_files(expected)


def assert_gapless(run_dir: RunDir) -> None:
    """Events of each attempt are numbered 1, 2, 3, ..."""
    for attempt in run_dir.attempts():
        numbers = [event.seq for event in read_events(run_dir, attempt)]
        assert numbers == list(range(1, len(numbers) + 1))
