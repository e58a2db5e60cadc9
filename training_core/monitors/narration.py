"""The console log of a trainer: one line for people about each event that is worth one.

`workers.trainer_main` hands `narrate` to the event log. What would surprise: it never raises, since
a console on a full disk must not stop training; and it leaves out phases, which come four a second.
"""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime
from functools import singledispatch

from training_core.contract.events import (
    AttemptStarted,
    CheckpointSaved,
    ControlApplied,
    EvaluationFinished,
    EventHead,
    Interval,
    MetricsLogged,
    Notice,
    StageStarted,
)

SHOWN = (
    ("reward", "reward"),
    ("sft/loss", "loss"),
    ("loss", "loss"),
    ("entropy", "entropy"),
    ("grad_norm", "grad norm"),
    ("completions/mean_length", "tokens"),
    ("frac_reward_zero_std", "dead groups"),
)
"""Metrics of a step that its line shows, with the words for them."""


def narrate(event: EventHead) -> None:
    """Print the event's line, if it has one."""
    words = line_for(event)
    if words:
        clock = datetime.fromtimestamp(event.t, UTC).strftime("%H:%M:%S")
        with contextlib.suppress(OSError, ValueError):
            print(f"{clock}  {words}", flush=True)


@singledispatch
def line_for(event: EventHead) -> str | None:
    """What the console says of an event; None for those that are left out."""
    del event
    return None


@line_for.register
def _started(event: AttemptStarted) -> str:
    origin = f"from {event.checkpoint}" if event.checkpoint else "from the start"
    return (
        f"attempt {event.attempt} {origin}: step {event.start_step} of {event.total_steps},"
        f" {event.parameters:,} parameters on {event.device}, {event.compute_dtype},"
        f" {event.threads} threads"
    )


@line_for.register
def _stage(event: StageStarted) -> str:
    return f"stage {event.stage} begins at step {event.step}"


@line_for.register
def _metrics(event: MetricsLogged) -> str | None:
    """The line of a training step; an evaluation has a line of its own."""
    seconds = event.values.get("time/step")
    if seconds is None:
        return None
    shown = [
        f"{name} {event.values[key]:.4g}"
        for key, name in SHOWN
        if event.values.get(key) is not None
    ]
    return ", ".join([f"step {event.step} ({event.stage})", *shown, f"{seconds:.1f} s"])


@line_for.register
def _evaluation(event: EvaluationFinished) -> str:
    whole = event.results[0]
    changes = [
        f"{_change(compared.difference)} against {compared.against_label}"
        for compared in whole.compared
    ]
    solved = f"pass@1 {whole.pass_at_1.value:.3f} of {whole.pass_at_1.n} held-out prompts"
    return ", ".join([f"evaluation, {event.title}: {solved}", *changes, f"{event.seconds:.1f} s"])


def _change(difference: Interval) -> str:
    return f"{difference.value:+.3f} [{difference.low:+.3f}, {difference.high:+.3f}]"


@line_for.register
def _checkpoint(event: CheckpointSaved) -> str:
    best = ", the best so far" if event.is_best else ""
    return f"checkpoint {event.path}, {event.size_bytes / 1e6:,.0f} MB{best}"


@line_for.register
def _control(event: ControlApplied) -> str:
    return f"{event.command}: {event.result}"


@line_for.register
def _notice(event: Notice) -> str:
    return f"{event.level}: {event.message}"
