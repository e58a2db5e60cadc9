"""Does a run that is killed at any moment end as if nothing had been?

    python benchmarks/exact_resume.py [--rounds N] [--quick]

For each kind of stage and algorithm the tiny model is trained once in one go and N times (10) with
kill -9 after a random number of events, twice in a third of the rounds. Every metric that does not
depend on the clock, every evaluation, the last weights and the optimiser's moments must be equal,
bit for bit. `--quick` takes one round a kind.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from training_core.contract.algorithms import (
    AlgorithmSpec,
    CispoSpec,
    DapoSpec,
    DivergenceSpec,
    DrGrpoSpec,
    GrpoSpec,
    GspoSpec,
    ReinforcePlusPlusBaselineSpec,
    ReinforcePlusPlusSpec,
    RlooSpec,
)
from training_core.contract.domains import ReasoningGymDomain
from training_core.contract.events import EVENT, Event
from training_core.contract.metrics import is_wall_clock
from training_core.contract.rewards import LengthReward, RewardSpec
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

ROOT = Path(__file__).resolve().parents[1]
LIMIT_S = 600
ADAPTIVE = DivergenceSpec(coefficient=0.02, target_nats=0.05, horizon_rollouts=100)
ALGORITHMS: dict[str, AlgorithmSpec] = {
    "grpo": GrpoSpec(inner_epochs=2, divergence=ADAPTIVE),
    "dr_grpo": DrGrpoSpec(minibatches=2),
    "dapo": DapoSpec(overlong_frac=0.0, most_sampling_rounds=3, minibatches=2),
    "gspo": GspoSpec(minibatches=2, inner_epochs=2),
    "cispo": CispoSpec(minibatches=2),
    "rloo": RlooSpec(),
    "reinforce_plus_plus": ReinforcePlusPlusSpec(inner_epochs=2),
    "reinforce_plus_plus_baseline": ReinforcePlusPlusBaselineSpec(entropy_coefficient=0.01),
}
WARM_UP = SftStage(steps=4, batch_size=4, optimiser=OptimiserSpec(learning_rate=5e-3))


def spec_of(kind: str) -> RunSpec:
    """Twelve steps of the tiny model; rewards are 0 or -1, so that some groups are dead."""
    rate = OptimiserSpec(learning_rate=1e-3, decay="linear", warmup_steps=2)
    rl = RlStage(
        steps=8,
        prompts_per_step=4,
        group_size=4,
        sampling=SamplingSpec(max_new_tokens=6, temperature=0.9),
        optimiser=rate,
        algorithm=ALGORITHMS.get(kind, GrpoSpec()),
    )
    long_sft = WARM_UP.model_copy(update={"steps": 12, "optimiser": rate})
    return RunSpec(
        name=kind,
        model=ModelSpec(ref=TINY_MODEL),
        domains=(
            ReasoningGymDomain(
                name="math/add",
                generator="basic_arithmetic",
                params={"min_digits": 1, "max_digits": 1, "max_terms": 2, "operators": ("+",)},
                demonstration_template="{answer}",
                held_out_items=6,
            ),
        ),
        reward=RewardSpec(root=LengthReward(target_tokens=1, limit_tokens=2)),
        stages=(long_sft,) if kind == "sft" else (WARM_UP, rl),
        evaluation=EvaluationSpec(interval_steps=3, max_new_tokens=6, temperature=0.9),
        checkpoint=CheckpointSpec(interval_steps=3),
        resources=ResourceSpec(threads=1),
    )


class Outcome(NamedTuple):
    """What must be equal."""

    rows: dict[tuple[int, str], list[str]]
    evaluations: list[dict[str, Any]]
    files: dict[str, bytes]


def train(run_dir: RunDir, attempt: int, kill_after_events: int | None = None) -> bool:
    """One attempt as a process of its own; whether it came to its end."""
    run_dir.write_owner(attempt, 100 + attempt)
    run_dir.attempt(attempt).mkdir(parents=True, exist_ok=True)
    with run_dir.console_file(attempt).open("wb") as console:
        process = subprocess.Popen(
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
    deadline = time.monotonic() + LIMIT_S
    while process.poll() is None and time.monotonic() < deadline:
        if kill_after_events is not None and count_events(run_dir, attempt) >= kill_after_events:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            return False
        time.sleep(0.002)
    if process.poll() != 0:
        process.kill()
        raise SystemExit(run_dir.console_file(attempt).read_text()[-3000:])
    return True


def count_events(run_dir: RunDir, attempt: int) -> int:
    """Whole lines that the attempt has written."""
    try:
        return run_dir.events_file(attempt).read_bytes().count(b"\n")
    except FileNotFoundError:
        return 0


def live_events(run_dir: RunDir) -> Iterator[Event]:
    """Events of all attempts, without what a later attempt did again."""
    found: list[Event] = []
    for attempt in run_dir.attempts():
        lines = whole_lines(run_dir.events_file(attempt))
        events = [EVENT.validate_json(line) for _, line in lines]
        start = next((e for e in events if e.kind == "attempt_started"), None)
        if start is None:
            continue  # killed before it began
        kept = start.start_step if start.checkpoint else -1
        found = [event for event in found if getattr(event, "step", 0) <= kept] + events
    yield from found


def outcome_of(run_dir: RunDir) -> Outcome:
    """What a finished run has left."""
    rows: dict[tuple[int, str], list[str]] = {}
    evaluations = []
    for event in live_events(run_dir):
        if event.kind == "metrics":
            for name, value in event.values.items():
                if not is_wall_clock(name):
                    rows.setdefault((event.step, name), []).append(repr(value))
        elif event.kind == "evaluation":
            row = json.loads(event.model_dump_json())
            evaluations.append({k: v for k, v in row.items() if k not in {"seq", "t", "seconds"}})
    last = max(run_dir.checkpoints.glob("step-*"))
    names = ("model.safetensors", "optimiser.safetensors")
    return Outcome(rows, evaluations, {name: (last / name).read_bytes() for name in names})


def drill(kind: str, number: int, folder: Path, whole: Outcome, events: int) -> bool:
    """One round: kills, resumes, and whether the end is the same."""
    dice = random.Random(f"{kind}/{number}")
    run_dir = RunDir(folder / f"{kind}-{number}")
    run_dir.write_spec(spec_of(kind))
    attempt = 1
    for _ in range(2 if number % 3 == 2 else 1):
        if train(run_dir, attempt, dice.randint(3, events - 3)):
            break
        attempt += 1
    else:
        train(run_dir, attempt)
    return outcome_of(run_dir) == whole


def measure(kind: str, rounds: int, folder: Path) -> int:
    """Rounds that ended otherwise."""
    run_dir = RunDir(folder / kind)
    run_dir.write_spec(spec_of(kind))
    train(run_dir, 1)
    whole, events = outcome_of(run_dir), count_events(run_dir, 1)
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        same = list(pool.map(lambda n: drill(kind, n, folder, whole, events), range(rounds)))
    return same.count(False)


def main() -> None:
    """Drill every kind, print, and end with the RESULT line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--quick", action="store_true", help="one round a kind")
    arguments = parser.parse_args()
    rounds = 1 if arguments.quick else arguments.rounds
    unequal: dict[str, int] = {}
    print(f"{'kind':<32}{'rounds':>8}{'unequal':>9}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("sft", *ALGORITHMS):
            unequal[kind] = measure(kind, rounds, Path(folder))
            print(f"{kind:<32}{rounds:>8}{unequal[kind]:>9}", flush=True)
    result = {
        "quick": arguments.quick,
        "kinds": list(unequal),
        "rounds": rounds,
        "unequal": sum(unequal.values()),
    }
    print("RESULT " + json.dumps(result))
    if result["unequal"]:
        raise SystemExit("Some run did not end as the undisturbed one.")


if __name__ == "__main__":
    main()
