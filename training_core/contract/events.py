"""Events: what a trainer says about itself, one JSON line each, append-only.

Written by `training_core.monitors.jsonl` to `attempts/K/events.jsonl`, read by `workers.ingest`,
turned into rows by `webapp.lifecycle.record_events`. `seq` counts from 1 inside an attempt, so
replaying a file is harmless.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from training_core.contract.strict import WireModel

Phase = Literal["load", "rollout", "reward", "update", "sft", "evaluate", "checkpoint"]
EvaluationLabel = Literal["start", "stage_end", "interval", "final", "requested"]
RolloutKind = Literal["train", "evaluate"]
Outcome = Literal["succeeded", "stopped", "paused", "shutdown", "failed"]


class EventHead(WireModel):
    """What every event carries."""

    seq: int = Field(ge=1)
    """Number of the event inside its attempt, without gaps."""
    t: float
    """Wall-clock time in seconds since 1970 (UTC)."""


class AttemptStarted(EventHead):
    """The trainer process is up and knows where it starts from."""

    kind: Literal["attempt_started"] = "attempt_started"
    attempt: int
    """Number of the attempt, from 1."""
    start_step: int
    """Optimiser steps already done in the checkpoint it starts from; 0 for a fresh start."""
    checkpoint: str | None
    """Directory of that checkpoint relative to the run directory, or null."""
    total_steps: int
    """Steps of the whole program."""
    pid: int
    """Process id of the trainer."""
    device: str
    """Device in words."""
    compute_dtype: str
    """Type of matrix products."""
    threads: int
    """Processor threads."""
    parameters: int
    """Parameters of the policy."""
    versions: dict[str, str]
    """Versions of the libraries that decide the numbers."""


class PhaseProgress(EventHead):
    """How far the phase inside the current step is; at most four a second."""

    kind: Literal["phase"] = "phase"
    step: int
    """The step being worked on, from 1; 0 before the first."""
    stage: str
    """Name of the stage; empty outside stages."""
    phase: Phase
    """What is being done."""
    done: int
    """Items done."""
    total: int
    """Items to do; 0 when unknown."""
    unit: str
    """What is counted, such as `rollouts` or `tokens`."""
    tokens_per_s: float | None = None
    """Speed of the phase in tokens per second, where it handles tokens."""


class StageStarted(EventHead):
    """A stage begins."""

    kind: Literal["stage_started"] = "stage_started"
    step: int
    """Steps done before it."""
    stage: str
    """Its name."""
    index: int
    """Its position in the program, from 0."""


class MetricsLogged(EventHead):
    """The metrics of one finished step, or of one evaluation."""

    kind: Literal["metrics"] = "metrics"
    step: int
    """Steps done."""
    stage: str
    """Name of the stage."""
    values: dict[str, float]
    """Metric name to value; names stand in `contract.metrics`."""


class RolloutsWritten(EventHead):
    """Groups of rollouts were appended to a file of the run directory."""

    kind: Literal["rollouts"] = "rollouts"
    step: int
    """The step they belong to."""
    stage: str
    """Name of the stage."""
    rollout_kind: RolloutKind
    """Sampled for training or for evaluation."""
    file: str
    """File relative to the run directory; one `RolloutGroupRecord` a line."""
    offset_bytes: int
    """Where the new lines begin."""
    length_bytes: int
    """How long they are."""
    groups: int
    """Groups in them."""


class Interval(WireModel):
    """An estimate with its 95 % interval."""

    value: float
    """The estimate."""
    low: float
    """Lower end."""
    high: float
    """Upper end."""
    n: int
    """Items it rests on."""


class PairedDifference(WireModel):
    """Change of pass@1 against an earlier evaluation of the same items."""

    against_step: int
    """Step of the earlier evaluation."""
    against_label: str
    """What the earlier evaluation was, in words such as `base model` or `after warm-up`."""
    difference: Interval
    """Mean of the paired differences, with its bootstrap interval."""


class DomainResult(WireModel):
    """Held-out result on one domain, or on all of them together."""

    domain: str
    """Name of the domain; `all` for all together."""
    pass_at_1: Interval
    """Share of items that succeed, with Wilson's interval."""
    reward: Interval
    """Mean total reward, with a bootstrap interval."""
    components: dict[str, Interval]
    """Mean of each reward, by name."""
    unscored: int
    """Completions whose reward could not be computed; they are in no mean."""
    mean_length_tokens: float
    """Mean completion length."""
    truncated_frac: float
    """Share of completions cut at the limit."""
    compared: tuple[PairedDifference, ...] = ()
    """pass@1 against earlier evaluations of this run."""


class EvaluationFinished(EventHead):
    """A held-out evaluation is done."""

    kind: Literal["evaluation"] = "evaluation"
    step: int
    """Steps done."""
    stage: str
    """Stage it belongs to."""
    label: EvaluationLabel
    """Why it ran."""
    title: str
    """In words: `base model`, `after warm-up`, `step 40`, `final`."""
    recipe: str
    """Hash of items, prompts, sampling and rewards; only equal recipes are compared."""
    seconds: float
    """How long it took."""
    results: tuple[DomainResult, ...]
    """First `all`, then each domain."""


class CheckpointSaved(EventHead):
    """A checkpoint is on disk, whole."""

    kind: Literal["checkpoint"] = "checkpoint"
    step: int
    """Steps done in it."""
    stage: str
    """Stage it was saved in."""
    path: str
    """Directory relative to the run directory."""
    size_bytes: int
    """Its size on disk."""
    is_best: bool
    """Whether it holds the best held-out pass@1 so far."""
    pass_at_1: float | None
    """Held-out pass@1 of these weights where it was measured at this step, else null."""
    removed: tuple[str, ...]
    """Directories that the retention rule removed."""


class ControlApplied(EventHead):
    """A command from `control.jsonl` took effect at a step boundary."""

    kind: Literal["control"] = "control"
    step: int
    """Steps done when it took effect."""
    control_id: str
    """Id of the command."""
    command: str
    """What was asked for."""
    result: str
    """What came of it, in words."""


class Notice(EventHead):
    """Something a person should know; training goes on."""

    kind: Literal["notice"] = "notice"
    step: int
    """Steps done."""
    level: Literal["info", "warning", "alarm"]
    """How bad it is."""
    code: str
    """Stable short name."""
    message: str
    """What happened and what to do."""


class AttemptFinished(EventHead):
    """The last event of an attempt that ended by itself."""

    kind: Literal["attempt_finished"] = "attempt_finished"
    step: int
    """Steps done."""
    outcome: Outcome
    """How it ended."""
    cause: str
    """Stable short name, such as `done`, `budget`, `user`, `out_of_memory` or `bad_model`."""
    message: str
    """What happened, in a sentence."""
    advice: str = ""
    """What to do about it."""
    retryable: bool = False
    """Whether another attempt may succeed without a change."""


Event = Annotated[
    AttemptStarted
    | PhaseProgress
    | StageStarted
    | MetricsLogged
    | RolloutsWritten
    | EvaluationFinished
    | CheckpointSaved
    | ControlApplied
    | Notice
    | AttemptFinished,
    Field(discriminator="kind"),
]
EVENT: TypeAdapter[Event] = TypeAdapter(Event)
