"""Domains: where prompts and their answers come from.

A RunSpec lists domains; `training_core.domains` has one source file for each `type` here. A domain
has a training side and a held-out side that never share a prompt seed or a record.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from training_core.contract.strict import StrictModel

DomainName = Annotated[
    str, Field(min_length=1, max_length=120, pattern=r"^[a-z0-9][a-z0-9_\-]*(/[a-z0-9_\-]+)*$")
]


def _plain_value(value: object) -> object:
    """Refuse structures with one sentence, instead of one for each type that would be right."""
    items = value if isinstance(value, list | tuple) else (value,)
    if not all(isinstance(item, bool | int | float | str) for item in items):
        raise ValueError("must be text, a number, true or false, or a list of these")
    return value


GeneratorValue = Annotated[
    bool | int | float | str | tuple[bool | int | float | str, ...], BeforeValidator(_plain_value)
]


class Message(StrictModel):
    """One chat turn of a prompt."""

    role: Literal["system", "user", "assistant"]
    """Who speaks: system, user or assistant."""
    content: str
    """The text of the turn."""


class DatasetRecord(StrictModel):
    """One line of a dataset file in the run directory: a prompt and what is right."""

    record_id: str
    """Content hash of the record: the same text has the same id everywhere."""
    messages: tuple[Message, ...] = Field(min_length=1)
    """The prompt as chat turns; the last one is the user's."""
    answer: str
    """The right answer, always text; a reward decides how to compare it."""
    demonstration: str | None = None
    """A worked assistant reply for sft stages, or null."""
    split: Literal["train", "held_out"] = "train"
    """Which side of the domain the record is on."""


class ReasoningGymDomain(StrictModel):
    """Prompts made by a reasoning-gym generator: endless, seeded, offline."""

    type: Literal["reasoning_gym"] = "reasoning_gym"
    """Kind of domain."""
    name: DomainName
    """Name of the domain: lower-case words joined by `/`, such as `math/add`."""
    generator: str = Field(min_length=1, max_length=80)
    """Name of the reasoning-gym generator, such as `basic_arithmetic`."""
    params: dict[str, GeneratorValue] = Field(default_factory=dict, max_length=100)
    """Settings of the generator, such as `min_digits: 1`; unknown names are refused."""
    system_prompt: str = Field(default="", max_length=20_000)
    """System turn put before each prompt; empty for none."""
    question_template: str = Field(default="{question}", min_length=1, max_length=20_000)
    """User turn; `{question}` stands for the generated question."""
    demonstration_template: str = Field(default="<answer>{answer}</answer>", max_length=20_000)
    """Assistant reply that sft stages imitate; `{question}` and `{answer}` are filled in."""
    weight: float = Field(default=1.0, ge=0, le=1e6)
    """Share of this domain in the mix of prompts, relative to the other domains."""
    held_out_items: int = Field(default=64, ge=2, le=10_000)
    """Held-out prompts for evaluation; none of them is ever trained on."""


class DatasetDomain(StrictModel):
    """Prompts from an uploaded, frozen dataset version."""

    type: Literal["dataset"] = "dataset"
    """Kind of domain."""
    name: DomainName
    """Name of the domain: lower-case words joined by `/`, such as `support/refunds`."""
    dataset_version: str = Field(min_length=1, max_length=80)
    """Id of the dataset version."""
    content_hash: str = Field(default="", max_length=80)
    """Hash of the version's records, filled in at launch; a changed dataset is refused."""
    system_prompt: str = Field(default="", max_length=20_000)
    """System turn put before each prompt that has none; empty for none."""
    demonstration_template: str = Field(default="{answer}", max_length=20_000)
    """Assistant reply for sft stages where a record has no demonstration of its own."""
    weight: float = Field(default=1.0, ge=0, le=1e6)
    """Share of this domain in the mix of prompts, relative to the other domains."""
    held_out_items: int = Field(default=64, ge=2, le=10_000)
    """Largest number of held-out records that an evaluation uses."""


DomainSpec = Annotated[ReasoningGymDomain | DatasetDomain, Field(discriminator="type")]
