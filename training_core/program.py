"""The program of a run: its stages laid out on one axis of steps.

Called by `training_core.train`. Step numbers run from 1 through all stages.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from training_core.contract.spec import RunSpec
from training_core.contract.stages import StageSpec
from training_core.models.optimiser import learning_rate_at


@dataclass(frozen=True)
class PlannedStage:
    """A stage with its place in the program."""

    spec: StageSpec
    index: int
    """Position in the program, from 0."""
    before: int
    """Steps done before it begins."""

    @property
    def end(self) -> int:
        """Steps done when it ends."""
        return self.before + self.spec.steps

    def steps_after(self, done: int) -> range:
        """Numbers of the steps that are left."""
        return range(max(done, self.before) + 1, self.end + 1)

    def learning_rate(self, step: int) -> float:
        """Learning rate of a step."""
        return learning_rate_at(self.spec.optimiser, step=step - self.before, steps=self.spec.steps)


def plan_stages(spec: RunSpec) -> list[PlannedStage]:
    """All stages, in order."""
    planned: list[PlannedStage] = []
    before = 0
    for index, stage in enumerate(spec.stages):
        planned.append(PlannedStage(stage, index, before))
        before += stage.steps
    return planned


def stages_left(spec: RunSpec, done: int) -> Iterator[PlannedStage]:
    """The stages that still have steps after `done` steps."""
    return (stage for stage in plan_stages(spec) if stage.end > done)
