"""Stages: the ordered program of a run. Each stage trains the policy in one way.

`training_core.train` walks the stages in order; the step counter runs through all of them.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from training_core.contract.algorithms import AlgorithmSpec, GrpoSpec
from training_core.contract.strict import StrictModel

StageName = Annotated[str, Field(min_length=1, max_length=60, pattern=r"^[a-z0-9][a-z0-9_\-]*$")]


class OptimiserSpec(StrictModel):
    """AdamW with fp32 master weights (Loshchilov and Hutter 2019)."""

    learning_rate: float = Field(default=1e-5, ge=0, le=1.0)
    """Step size of AdamW after warm-up; 0 changes nothing and serves as a control."""
    warmup_steps: int = Field(default=0, ge=0, le=1_000_000)
    """Steps over which the learning rate rises linearly from 0."""
    decay: Literal["constant", "linear", "cosine"] = "constant"
    """How the learning rate falls from the end of warm-up to the end of the stage."""
    beta1: float = Field(default=0.9, ge=0, lt=1)
    """Decay of the running mean of gradients."""
    beta2: float = Field(default=0.999, ge=0, lt=1)
    """Decay of the running mean of squared gradients."""
    eps: float = Field(default=1e-8, gt=0, le=1)
    """Added to the denominator of the update."""
    weight_decay: float = Field(default=0.0, ge=0, le=10)
    """Decoupled weight decay."""
    max_grad_norm: float = Field(default=1.0, gt=0, le=1e9)
    """The gradient is scaled down to this global norm."""


class SamplingSpec(StrictModel):
    """How completions are sampled during training."""

    max_new_tokens: int = Field(default=64, ge=1, le=131_072)
    """Longest completion in tokens; a longer one is cut and counted as truncated."""
    temperature: float = Field(default=1.0, gt=0, le=10)
    """Softmax temperature; log-probabilities use the same one."""


class SftStage(StrictModel):
    """Supervised fine-tuning on demonstrations; only assistant tokens count."""

    type: Literal["sft"] = "sft"
    """Kind of stage."""
    name: StageName = "warm-up"
    """Name of the stage in charts."""
    steps: int = Field(default=8, ge=1, le=1_000_000)
    """Optimiser steps of the stage."""
    batch_size: int = Field(default=16, ge=1, le=65_536)
    """Demonstrations in each step."""
    optimiser: OptimiserSpec = OptimiserSpec()
    """Settings of the optimiser."""


class RlStage(StrictModel):
    """Reinforcement learning: sample groups, score them, follow the advantage."""

    type: Literal["rl"] = "rl"
    """Kind of stage."""
    name: StageName = "rl"
    """Name of the stage in charts."""
    steps: int = Field(default=50, ge=1, le=1_000_000)
    """Optimiser steps of the stage."""
    prompts_per_step: int = Field(default=4, ge=1, le=65_536)
    """Prompts in each step; each becomes one group."""
    group_size: int = Field(default=8, ge=2, le=1024)
    """Rollouts of each prompt (G)."""
    sampling: SamplingSpec = SamplingSpec()
    """How completions are sampled."""
    algorithm: AlgorithmSpec = GrpoSpec()
    """How rewards become a gradient."""
    optimiser: OptimiserSpec = OptimiserSpec()
    """Settings of the optimiser."""
    shuffle_rewards: bool = False
    """Control experiment: permute rewards over the whole batch, so that nothing can be learnt."""

    @model_validator(mode="after")
    def check_batch(self) -> Self:
        """A step is bounded by what one process can hold."""
        if self.prompts_per_step * self.group_size > 65_536:
            raise ValueError(
                "group_size: times prompts_per_step it must not exceed 65,536 rollouts"
            )
        return self


StageSpec = Annotated[SftStage | RlStage, Field(discriminator="type")]
