"""When a run will be done, from the times at which its steps were done. Pure.

Called by `record` for each finished step. The pace is a running mean over the steps of the current
stage; evaluations and checkpoints between steps count, since they will come again. While a later
stage is of another kind nothing can be said, and nothing is.
"""

from __future__ import annotations

from typing import NamedTuple

from training_core.contract.spec import RunSpec

WEIGHT = 0.2
"""Of the newest step in the running mean."""


class Pace(NamedTuple):
    """Kept as JSON in `Run.pace`."""

    t: float
    """When the last step was done, or when the stage or attempt began; seconds since 1970."""
    step: int
    """Steps done then."""
    step_s: float | None = None
    """Running mean of a step's duration; None before the first."""


def start_pace(t: float, step: int) -> Pace:
    """Count from here: an attempt or a stage begins."""
    return Pace(t, step)


def advance(pace: Pace | None, t: float, step: int) -> Pace:
    """One or more steps were done."""
    if pace is None or step <= pace.step:
        return pace or Pace(t, step)
    seconds = max(0.0, t - pace.t) / (step - pace.step)
    mean = seconds if pace.step_s is None else pace.step_s + WEIGHT * (seconds - pace.step_s)
    return Pace(t, step, mean)


def eta_s(pace: Pace | None, spec: RunSpec, step: int) -> float | None:
    """Seconds to the end of the program; None where the pace says nothing about what is left.

    After the last step that is so too: the last evaluation takes longer than no time.
    """
    if pace is None or pace.step_s is None or step >= spec.total_steps:
        return None
    kinds_left, done = set(), 0
    for stage in spec.stages:
        done += stage.steps
        if step <= done:
            kinds_left.add(stage.type)
    if len(kinds_left) > 1:
        return None
    return pace.step_s * (spec.total_steps - step)
