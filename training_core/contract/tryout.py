"""A tryout: a few completions of a base model on rows of a dataset, before a run is launched.

Asked for on the check page of a dataset (`webapp.datasets`), done by the process that takes steps
under glass, in a directory like theirs (`training_core.contract.glass`). Nothing is trained.
"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from training_core.contract.domains import DatasetDomain, DatasetRecord, Message
from training_core.contract.events import Interval
from training_core.contract.rollouts import FinishReason, RewardScore
from training_core.contract.spec import ResourceSpec, RunSpec
from training_core.contract.stages import RlStage, SamplingSpec
from training_core.contract.strict import StrictModel, WireModel

MOST_ROWS = 8
"""Rows that people still read."""
TRIES = 4
"""Completions of each row."""


class TryoutSpec(StrictModel):
    """What is tried."""

    kind: Literal["tryout"] = "tryout"
    """Told apart from a step under glass."""
    spec_version: Literal[1] = 1
    """Version of this document's form."""
    run: RunSpec
    """The run that is thought of: its model, prompts, rewards and sampling are tried."""
    records: tuple[DatasetRecord, ...] = Field(min_length=1, max_length=MOST_ROWS)
    """The rows."""
    tries: int = Field(default=TRIES, ge=1, le=16)
    """Completions of each row."""

    @model_validator(mode="after")
    def check_domain(self) -> Self:
        """Rows belong to one dataset."""
        if not isinstance(self.run.domains[0], DatasetDomain):
            raise ValueError("run.domains.0: a tryout needs a dataset")
        return self

    @property
    def domain(self) -> DatasetDomain:
        """How rows become prompts."""
        domain = self.run.domains[0]
        assert isinstance(domain, DatasetDomain)
        return domain

    @property
    def sampling(self) -> SamplingSpec:
        """That of the run's first rl stage, since those are the groups that it would learn from."""
        stages = (stage for stage in self.run.stages if isinstance(stage, RlStage))
        return next((stage.sampling for stage in stages), SamplingSpec())

    @property
    def resources(self) -> ResourceSpec:
        """Device, precision, memory."""
        return self.run.resources


class TryoutTry(WireModel):
    """One completion of one row."""

    text: str
    """The text without special tokens, as rewards saw it."""
    tokens: int
    """Length in tokens, the end token included."""
    finish_reason: FinishReason
    """How it ended; `length` means cut at the limit."""
    scores: tuple[RewardScore, ...]
    """One entry for each reward leaf."""
    reward: float | None
    """Total reward; null when unscored."""
    passed: bool | None
    """Whether it counts as success; null when unscored."""


class TryoutRow(WireModel):
    """One row with its completions."""

    record_id: str
    """The record."""
    messages: tuple[Message, ...]
    """The prompt as chat turns."""
    prompt: str
    """The very text that the model read, special tokens included."""
    prompt_tokens: int
    """Its length in tokens."""
    answer: str
    """The right answer."""
    tries: tuple[TryoutTry, ...] = Field(min_length=1)
    """The completions."""

    @property
    def has_spread(self) -> bool:
        """Whether its rewards differ, so that a group of it would teach something."""
        return len({one.reward for one in self.tries if one.reward is not None}) > 1


class TryoutResult(WireModel):
    """What came out."""

    version: Literal[1] = 1
    """Version of this document's form."""
    architecture: str
    """Class name of the model."""
    parameters: int
    """Weights of the model."""
    device: str
    """Device in words."""
    compute_dtype: str
    """Type of matrix products."""
    rows: tuple[TryoutRow, ...] = Field(min_length=1)
    """The rows."""
    pass_at_1: Interval
    """Share of tries that pass, with an interval over rows, as evaluations have it."""
    components: dict[str, float | None]
    """Name of each reward leaf to its mean over scored tries; null where none was scored."""
    seconds: dict[str, float]
    """Phase to the time that it took, in seconds."""

    @property
    def tries(self) -> list[TryoutTry]:
        """All completions."""
        return [one for row in self.rows for one in row.tries]
