"""Rewards: a declarative tree of typed leaves.

A leaf gives a score and a status; a node joins its children. `training_core.rewards` has one file
for each leaf type here. A leaf that fails is *unscored*, never 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from training_core.contract.strict import SpecFault, StrictModel

MAX_DEPTH = 8

RewardName = Annotated[str, Field(min_length=1, max_length=60, pattern=r"^[a-z][a-z0-9_\-]*$")]


class CorrectnessReward(StrictModel):
    """1 when the number in the completion equals the answer, else 0."""

    type: Literal["correctness"] = "correctness"
    """Kind of reward."""
    name: RewardName = "correctness"
    """Name in charts and tables."""
    answer_tag: str = Field(default="answer", max_length=40, pattern=r"^[a-z][a-z0-9_]*$|^$")
    """Tag whose content is compared, such as `answer`; empty compares the last number."""
    tolerance: float = Field(default=0.0, ge=0, le=1.0)
    """Largest relative difference that still counts as equal; 0 means exactly equal."""


class FormatReward(StrictModel):
    """1 when each tag stands exactly once, in order, closed and not empty, and nothing else."""

    type: Literal["format"] = "format"
    """Kind of reward."""
    name: RewardName = "format"
    """Name in charts and tables."""
    tags: tuple[Annotated[str, Field(max_length=40, pattern=r"^[a-z][a-z0-9_]*$")], ...] = Field(
        default=("answer",), min_length=1, max_length=8
    )
    """Tags that must follow each other, such as `think`, `answer`."""
    allow_text_outside: bool = False
    """Whether text may stand before, between or after the tags."""


class LengthReward(StrictModel):
    """0 up to the target length, falling linearly to -1 at the limit (DAPO, equation 13)."""

    type: Literal["length"] = "length"
    """Kind of reward."""
    name: RewardName = "length"
    """Name in charts and tables."""
    target_tokens: int = Field(default=48, ge=0, le=1_000_000)
    """Completion length, in tokens, up to which nothing is taken off."""
    limit_tokens: int = Field(default=64, ge=1, le=1_000_000)
    """Completion length, in tokens, at which the reward is -1."""

    @model_validator(mode="after")
    def check_order(self) -> Self:
        """The slope needs a limit beyond its target."""
        if self.limit_tokens <= self.target_tokens:
            raise ValueError("limit_tokens: must be larger than target_tokens")
        return self


class MatchReward(StrictModel):
    """1 when the text of the answer equals the right one, up to spelling, else 0."""

    type: Literal["match"] = "match"
    """Kind of reward."""
    name: RewardName = "match"
    """Name in charts and tables."""
    answer_tag: str = Field(default="answer", max_length=40, pattern=r"^[a-z][a-z0-9_]*$|^$")
    """Tag whose content is compared, such as `answer`; empty compares the whole completion."""
    ignore_case: bool = True
    """Whether `Paris` equals `paris`."""
    ignore_end_marks: bool = True
    """Whether full stops, quotes and brackets around the answer are left out."""


class WeightedTerm(StrictModel):
    """One child of a weighted sum."""

    weight: float = Field(ge=-1000, le=1000)
    """Factor on the child's score."""
    node: RewardNode
    """The reward that is weighted."""


class WeightedSumReward(StrictModel):
    """Sum of weight times score over the children."""

    type: Literal["weighted_sum"] = "weighted_sum"
    """Kind of node."""
    terms: tuple[WeightedTerm, ...] = Field(min_length=1, max_length=32)
    """The rewards that are added up, each with its weight."""
    on_unscored: Literal["drop", "renormalise"] = "drop"
    """When a child is unscored: drop the rollout from training, or rescale the other weights."""

    @model_validator(mode="after")
    def check_weights(self) -> Self:
        """A sum of nothing teaches nothing."""
        if all(term.weight == 0 for term in self.terms):
            raise ValueError("terms: at least one weight must differ from 0")
        return self


RewardLeaf = CorrectnessReward | FormatReward | LengthReward | MatchReward
RewardNode = Annotated[RewardLeaf | WeightedSumReward, Field(discriminator="type")]


class RewardSpec(StrictModel):
    """What a completion is worth."""

    root: RewardNode
    """The reward, or the tree of rewards."""

    @model_validator(mode="before")
    @classmethod
    def check_depth(cls, data: Any) -> Any:
        """A tree deeper than people read is a mistake, or meant to exhaust the stack."""
        level = [data.get("root")] if isinstance(data, dict) else []
        for _ in range(MAX_DEPTH):
            terms = [node.get("terms") for node in level if isinstance(node, dict)]
            inner = [term for some in terms if isinstance(some, list | tuple) for term in some]
            level = [term.get("node") for term in inner if isinstance(term, dict)]
        if level:
            raise SpecFault(
                "root", "rewards must not be nested more than {most} deep", most=MAX_DEPTH
            )
        return data

    @model_validator(mode="after")
    def check_names(self) -> Self:
        """Metrics and tables are keyed by name, so two leaves must not share one."""
        counts = Counter(leaf.name for leaf in iter_leaves(self.root))
        doubled = sorted(name for name, count in counts.items() if count > 1)
        if doubled:
            raise SpecFault(
                "",
                "two rewards are named {names}; give each its own name",
                names=", ".join(doubled),
            )
        return self


def iter_leaves(node: RewardNode) -> Iterator[RewardLeaf]:
    """Yield the leaves below a node, left to right."""
    if isinstance(node, WeightedSumReward):
        for term in node.terms:
            yield from iter_leaves(term.node)
    else:
        yield node


WeightedTerm.model_rebuild()
