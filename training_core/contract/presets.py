"""Presets: whole RunSpecs that are known to work, shown as cards on the launch page.

Each is measured by `benchmarks/quickstart.py`; change one and measure again.
"""

from __future__ import annotations

from typing import NamedTuple

from training_core.contract.domains import ReasoningGymDomain
from training_core.contract.rewards import (
    CorrectnessReward,
    FormatReward,
    RewardSpec,
    WeightedSumReward,
    WeightedTerm,
)
from training_core.contract.spec import (
    TINY_MODEL,
    CheckpointSpec,
    EvaluationSpec,
    ModelSpec,
    RunSpec,
)
from training_core.contract.stages import (
    OptimiserSpec,
    RlStage,
    SamplingSpec,
    SftStage,
)


class Preset(NamedTuple):
    """A card on the launch page."""

    slug: str
    """Name in URLs."""
    title: str
    """Heading of the card."""
    teaches: str
    """What the model learns, in a sentence."""
    expect: str
    """What you will see, in a sentence."""
    minutes: float
    """Minutes on two processor cores."""
    spec: RunSpec
    """What is launched."""


_ANSWER_PROMPT = "Solve the problem. Reply with the number inside <answer></answer>, nothing else."

_ADDITION = ReasoningGymDomain(
    name="math/add",
    generator="basic_arithmetic",
    params={
        "min_terms": 2,
        "max_terms": 2,
        "min_digits": 1,
        "max_digits": 2,
        "operators": ("+",),
        "allow_parentheses": False,
    },
    system_prompt=_ANSWER_PROMPT,
    held_out_items=320,
)

_TAGGED_NUMBER = RewardSpec(
    root=WeightedSumReward(
        terms=(
            WeightedTerm(weight=0.7, node=CorrectnessReward()),
            WeightedTerm(weight=0.3, node=FormatReward()),
        )
    )
)

TEACH_SMOLLM2_TO_ADD = Preset(
    slug="teach-smollm2-to-add",
    title="Teach SmolLM2 to add",
    teaches="A real 135-million-parameter chat model learns to add and to answer in a tag.",
    expect="The warm-up shows it the tag; then RL makes it keep to the tag and add better.",
    minutes=8,
    spec=RunSpec(
        name="Teach SmolLM2 to add",
        domains=(_ADDITION,),
        reward=_TAGGED_NUMBER,
        stages=(
            SftStage(steps=10, batch_size=8, optimiser=OptimiserSpec(learning_rate=1e-5)),
            RlStage(
                steps=40,
                prompts_per_step=8,
                group_size=16,
                sampling=SamplingSpec(max_new_tokens=16),
                optimiser=OptimiserSpec(learning_rate=7e-7, warmup_steps=3),
            ),
        ),
        evaluation=EvaluationSpec(interval_steps=0, max_new_tokens=16),
        checkpoint=CheckpointSpec(interval_steps=15),
    ),
)

_COPYING = ReasoningGymDomain(
    name="numbers/copy",
    generator="basic_arithmetic",
    params={
        "min_terms": 1,
        "max_terms": 1,
        "min_digits": 1,
        "max_digits": 3,
        "operators": ("+",),
        "allow_parentheses": False,
    },
    held_out_items=128,
)

TINY_COPY = Preset(
    slug="tiny-model",
    title="Tiny model, one minute",
    teaches="A one-million-parameter byte model learns from scratch to copy a number into a tag.",
    expect="The warm-up teaches the format; RL then teaches the digits on its own.",
    minutes=1,
    spec=RunSpec(
        name="Tiny model, one minute",
        model=ModelSpec(ref=TINY_MODEL),
        domains=(_COPYING,),
        reward=_TAGGED_NUMBER,
        stages=(
            SftStage(
                steps=60,
                batch_size=32,
                optimiser=OptimiserSpec(learning_rate=1e-3, warmup_steps=10),
            ),
            RlStage(
                steps=60,
                prompts_per_step=16,
                group_size=8,
                sampling=SamplingSpec(max_new_tokens=24),
                optimiser=OptimiserSpec(learning_rate=1e-4),
            ),
        ),
        evaluation=EvaluationSpec(interval_steps=20, max_new_tokens=24),
        checkpoint=CheckpointSpec(interval_steps=20),
    ),
)

PRESETS: tuple[Preset, ...] = (TEACH_SMOLLM2_TO_ADD, TINY_COPY)


def find_preset(slug: str) -> Preset | None:
    """The preset of that name, or None."""
    return next((preset for preset in PRESETS if preset.slug == slug), None)
