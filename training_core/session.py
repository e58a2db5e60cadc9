"""The session: everything one attempt works with, gathered once and handed to each part.

Made by `workers.trainer_main`. Its `state` is replaced at step boundaries only, so that whatever
ends a step early leaves the last whole step standing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch

from training_core.algorithms.learner import Learner, UpdateProgress
from training_core.checkpoints import CheckpointStore
from training_core.contract.algorithms import DivergenceSpec
from training_core.contract.rundir import RunDir
from training_core.contract.spec import RunSpec
from training_core.contract.stages import RlStage
from training_core.domains.item import DomainSource
from training_core.evaluate import Evaluator
from training_core.models.optimiser import build_optimiser
from training_core.models.policy import Policy
from training_core.monitors.jsonl import EventLog
from training_core.monitors.machine import MachineMeter
from training_core.monitors.phase import PhaseReporter
from training_core.monitors.steering import Steering
from training_core.program import PlannedStage
from training_core.state import RunState


@dataclass
class Session:
    """One attempt at a run."""

    spec: RunSpec
    run_dir: RunDir
    attempt: int
    policy: Policy
    learner: Learner
    sources: Mapping[str, DomainSource]
    """Opened domains by name."""
    evaluator: Evaluator
    store: CheckpointStore
    log: EventLog
    steering: Steering
    state: RunState
    optimiser: torch.optim.Optimizer | None = None
    """AdamW of the current stage."""
    restore_optimiser: Callable[[PlannedStage, torch.optim.Optimizer], None] | None = None
    """Fills the first optimiser of a resumed attempt."""
    stage_name: str = ""
    """Name of the current stage; empty before the first."""
    load_reference: Callable[[], Policy] | None = None
    """Brings back the reference of the stage in which an attempt resumes."""
    reference: Policy | None = None
    """What the stage's divergence is measured against; None where it has none."""
    unsaved_notice_given: bool = False
    """Whether people know that checkpoints do not fit on the disk."""
    machine: MachineMeter = field(default_factory=MachineMeter)

    def open_stage(self, stage: PlannedStage) -> torch.optim.Optimizer:
        """The optimiser of a stage, and the reference that its divergence needs: fresh, or restored
        when the stage was resumed midway."""
        self.stage_name = stage.spec.name
        optimiser = build_optimiser(stage.spec.optimiser, self.policy.parameters())
        if self.restore_optimiser is not None:
            self.restore_optimiser(stage, optimiser)
            self.restore_optimiser = None
        self.optimiser = optimiser
        self._open_reference(stage)
        return optimiser

    def _open_reference(self, stage: PlannedStage) -> None:
        """Keep the policy that an rl stage begins with, where its divergence needs it.

        A stage that was begun without one, as a restart may change that, takes the policy of now.
        """
        restore, self.load_reference = self.load_reference, None
        wanted = isinstance(stage.spec, RlStage) and stage.spec.algorithm.divergence.coefficient > 0
        begun = self.state.reference_step
        if not wanted:
            self.reference, begun = None, None
        elif begun is None or restore is None:
            self.reference, begun = self.policy.frozen_copy(), self.state.step
        else:
            self.reference = restore()
        self.state = self.state.model_copy(update={"reference_step": begun})

    def divergence_coefficient(self, spec: DivergenceSpec) -> float:
        """Weight of the divergence at the next step."""
        adapted = self.state.divergence_coefficient
        return spec.coefficient if adapted is None else adapted

    def update_progress(self, report: PhaseReporter) -> UpdateProgress:
        """Report an update's micro-batches; end it where nothing has been changed yet."""

        def progress(done: int, total: int, *, may_abandon: bool) -> None:
            report.update(done, total=total)
            if may_abandon:
                self.steering.check()

        return progress


class Stopwatch:
    """Seconds of the parts of a step, as `time/...` metrics."""

    def __init__(self) -> None:
        self._began = self._lap = time.perf_counter()
        self.values: dict[str, float] = {}

    def lap(self, name: str) -> float:
        """Time since the last lap, kept under `time/{name}`."""
        at = time.perf_counter()
        seconds, self._lap = at - self._lap, at
        self.values[f"time/{name}"] = self.values.get(f"time/{name}", 0.0) + seconds
        return seconds

    def total(self) -> float:
        """Time since the start, kept under `time/step`."""
        self.values["time/step"] = time.perf_counter() - self._began
        return self.values["time/step"]
