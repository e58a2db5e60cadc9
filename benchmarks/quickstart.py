"""Does a preset teach what it says, on this machine, and do its controls teach nothing?

    python benchmarks/quickstart.py [--controls] [--quick]

Starts the whole product, launches the preset "Teach SmolLM2 to add" as the launch page does, waits
for its end and reads the held-out evaluations that the run itself made: base model, after the
warm-up, at the end. `--controls` repeats it with a learning rate of 0 and with shuffled rewards in
the RL stage. `--quick` takes the tiny-model preset instead and says so in the result.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.stack import running_stack
from training_core.contract.presets import TEACH_SMOLLM2_TO_ADD, TINY_COPY
from training_core.contract.spec import RunSpec
from training_core.contract.stages import RlStage

RUN_LIMIT_S = 60 * 60
TERMINAL = {"succeeded", "failed", "stopped"}


class Measured(NamedTuple):
    """What one run showed."""

    name: str
    seconds: float
    first_completion_s: float | None
    correctness_base: float
    correctness_after_sft: float
    correctness_after: float
    gain: float
    ci_low: float
    ci_high: float


def with_rl(spec: RunSpec, name: str, **change: Any) -> RunSpec:
    """The spec with a change in each RL stage."""
    stages = tuple(
        stage.model_copy(update=change) if isinstance(stage, RlStage) else stage
        for stage in spec.stages
    )
    return spec.model_copy(update={"name": name, "stages": stages})


def control_specs(spec: RunSpec) -> list[RunSpec]:
    """Two runs in which RL must teach nothing."""
    optimiser = next(s.optimiser for s in spec.stages if isinstance(s, RlStage))
    still = optimiser.model_copy(update={"learning_rate": 0.0})
    return [
        with_rl(spec, "control: learning rate 0", optimiser=still),
        with_rl(spec, "control: shuffled rewards", shuffle_rewards=True),
    ]


def measure(spec: RunSpec, preset: str) -> Measured:
    """Launch a run through the product and wait for its end."""
    from webapp.accounts.services import ensure_owner  # noqa: PLC0415 - after django.setup()
    from webapp.rollouts.models import RolloutGroup  # noqa: PLC0415
    from webapp.runs.services import launch_run  # noqa: PLC0415

    started = time.monotonic()
    run = launch_run(owner=ensure_owner(), spec=spec, preset=preset)
    first_completion_s = None
    while run.state not in TERMINAL:
        time.sleep(0.5)
        run.refresh_from_db()
        elapsed = time.monotonic() - started
        if first_completion_s is None and RolloutGroup.objects.filter(run=run).exists():
            first_completion_s = elapsed
        if elapsed > RUN_LIMIT_S:
            raise SystemExit(f"{spec.name}: not done after {RUN_LIMIT_S} s (state {run.state})")
    if run.state != "succeeded":
        raise SystemExit(f"{spec.name}: {run.state}, {run.cause}: {run.message}")
    return _read(run, spec.name, time.monotonic() - started, first_completion_s)


def _read(run: Any, name: str, seconds: float, first_completion_s: float | None) -> Measured:
    """The run's own evaluations: base, after the first stage, final."""
    from webapp.evaluation.models import EvalRun  # noqa: PLC0415 - after django.setup()

    rows = list(EvalRun.objects.filter(run=run, superseded=False).order_by("step", "pk"))
    sft_steps = run.spec["stages"][0]["steps"]
    whole = {row.step: next(r for r in row.results if r["domain"] == "all") for row in rows}
    last = whole[max(whole)]
    against = next(c for c in last["compared"] if c["against_step"] == sft_steps)["difference"]
    return Measured(
        name=name,
        seconds=round(seconds, 1),
        first_completion_s=round(first_completion_s, 1) if first_completion_s else None,
        correctness_base=whole[0]["pass_at_1"]["value"],
        correctness_after_sft=whole[sft_steps]["pass_at_1"]["value"],
        correctness_after=last["pass_at_1"]["value"],
        gain=against["value"],
        ci_low=against["low"],
        ci_high=against["high"],
    )


HEAD = f"{'run':<28}{'seconds':>9}{'first':>7}{'base':>7}{'sft':>7}{'end':>7}{'gain':>8}  95 %"


def show(row: Measured) -> None:
    """A line of the table for people, as soon as its run has ended."""
    print(
        f"{row.name:<28}{row.seconds:>9.1f}{row.first_completion_s or 0:>7.1f}"
        f"{row.correctness_base:>7.3f}{row.correctness_after_sft:>7.3f}"
        f"{row.correctness_after:>7.3f}{row.gain:>+8.3f}  "
        f"[{row.ci_low:+.3f}, {row.ci_high:+.3f}]",
        flush=True,
    )


def main() -> None:
    """Measure, print, and end with the RESULT line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--controls", action="store_true", help="also run the two controls")
    parser.add_argument("--quick", action="store_true", help="the tiny model instead of SmolLM2")
    options = parser.parse_args()
    preset = TINY_COPY if options.quick else TEACH_SMOLLM2_TO_ADD
    specs = [preset.spec, *(control_specs(preset.spec) if options.controls else [])]
    rows = []
    with running_stack():
        print(HEAD, flush=True)
        for spec in specs:
            rows.append(measure(spec, preset.slug))
            show(rows[-1])
    main_run, *controls = rows
    result: dict[str, Any] = {
        "quick": options.quick,
        "preset": preset.slug,
        **{k: v for k, v in main_run._asdict().items() if k != "name"},
        "control_lr0": None,
        "control_shuffled": None,
    }
    for key, row in zip(("control_lr0", "control_shuffled"), controls, strict=False):
        result[key] = {"gain": row.gain, "ci_low": row.ci_low, "ci_high": row.ci_high}
    print("RESULT " + json.dumps(result))


if __name__ == "__main__":
    main()
