"""What a run made, as programs see it: checkpoints, evaluations, rollouts, logs, metrics."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from webapp.api.outputs.document import Document
from webapp.api.outputs.numbers import Number, plain, plain_stored
from webapp.evaluation.models import EvalRun
from webapp.rollouts.models import Rollout, RolloutGroup
from webapp.runs.models import Checkpoint


class CheckpointOut(Document):
    """A saved state of a run."""

    id: int
    step: int
    """Optimiser steps done when it was saved."""
    attempt: int
    """Attempt that saved it."""
    stage: str
    size_bytes: int
    is_best: bool
    """Whether it has the best held-out pass@1 so far."""
    pass_at_1: Number | None
    """Held-out pass@1, where it was evaluated."""
    created_at: datetime
    removed_at: datetime | None
    """When retention removed it from disk; null while it is there."""


class CheckpointList(Document):
    """Checkpoints of a run, the newest step first."""

    items: list[CheckpointOut]


class EvaluationOut(Document):
    """One held-out evaluation."""

    step: int
    """Optimiser steps done."""
    attempt: int
    stage: str
    label: str
    """Why it ran: start, stage_end, interval, final or requested."""
    title: str
    recipe: str
    """Only evaluations of equal recipe are comparable."""
    seconds: Number
    """How long it took."""
    at: datetime
    superseded: bool
    """Whether a later attempt went back to an earlier step."""
    results: list[dict[str, Any]]
    """First `all`, then each domain: pass@1, reward and components with 95 % intervals."""


class EvaluationList(Document):
    """Evaluations of a run in the order of their steps."""

    items: list[EvaluationOut]


class RolloutOut(Document):
    """One completion with its scores."""

    index: int
    """Place in its group, from 0."""
    completion: str
    """What the policy wrote, with its special tokens."""
    text: str
    """The same without them."""
    tokens: int
    finish_reason: str
    """`eos`, or `length` where it was cut off."""
    reward: Number | None
    """Total; null when it could not be computed, which is not 0."""
    advantage: Number | None
    passed: bool | None
    """Whether it counts as a success."""
    scores: list[dict[str, Any]]
    """Each reward with status, value and explanation."""


class GroupOut(Document):
    """All completions of one prompt at one step."""

    id: int
    group_id: str
    """The trainer's own name of it."""
    step: int
    stage: str
    kind: str
    """`train` or `evaluate`."""
    domain: str
    prompt_id: str
    messages: list[dict[str, Any]]
    """The prompt's chat turns."""
    answer: str
    """What is right."""
    reward_mean: Number | None
    reward_std: Number | None
    zero_spread: bool
    """Whether all rewards are equal, so that nothing can be learnt from it."""
    size: int
    passed: int
    """Completions that succeed."""
    unscored: int
    """Completions whose reward could not be computed."""
    truncated: int
    """Completions cut off at the limit."""


class GroupWithRollouts(GroupOut):
    """A group with its completions."""

    rollouts: list[RolloutOut]


class GroupPage(Document):
    """One page of groups."""

    items: list[GroupOut]
    next_cursor: int | None
    """Give it as `cursor` for the next page; null on the last."""


class LogPiece(Document):
    """A part of a trainer's console."""

    attempt: int
    text: str
    """Whole lines, with the colour codes of a terminal."""
    start: int
    """Byte where it begins."""
    end: int
    """Byte where the next piece begins: the `offset` of the next request."""
    size: int
    """Bytes of the file now; there is more to read while `end` is less."""


class MetricOut(Document):
    """One metric that a run has logged."""

    name: str
    section: str
    """Where charts put it."""
    unit: str
    direction: str
    """Which way is better."""
    meaning: str


class MetricList(Document):
    """The metrics of a run."""

    items: list[MetricOut]


class PointOut(Document):
    """One point of a curve."""

    step: int
    time: str
    """ISO 8601 in UTC."""
    x: Number
    """Place on the axis that was asked for."""
    value: Number | None
    smoothed: Number | None
    """Debiased exponential mean, where a weight was asked for."""


class CurveRun(Document):
    """Whose curve it is."""

    id: UUID
    number: int
    name: str


class CurveOut(Document):
    """One metric of one run."""

    run: CurveRun
    metric: dict[str, Any]
    """Name, unit, direction and meaning."""
    points_in_window: int
    """Points that were logged there."""
    points_here: int
    """Points of this answer."""
    every_point: bool
    """Whether the two are the same; otherwise extremes are exact and the rest is thinned."""
    points: list[PointOut]


class CurvesOut(Document):
    """Curves and what they stand on."""

    x: dict[str, Any]
    """Kind, title and unit of the axis."""
    smoothing_weight: float
    window: dict[str, float | None]
    """Ends of the window on the axis; null where it is open."""
    curves: list[CurveOut]


def checkpoint_out(row: Checkpoint) -> CheckpointOut:
    """The answer for a checkpoint."""
    return CheckpointOut(**{n: plain(getattr(row, n)) for n in CheckpointOut.model_fields})


def evaluation_out(row: EvalRun) -> EvaluationOut:
    """The answer for an evaluation."""
    fields = {n: plain(getattr(row, n)) for n in EvaluationOut.model_fields if n != "results"}
    return EvaluationOut(**fields, results=_words(row.results))


def group_out(row: RolloutGroup) -> GroupOut:
    """The answer for a group in a list."""
    return GroupOut(**_group_fields(row))


def group_with_rollouts(row: RolloutGroup) -> GroupWithRollouts:
    """The answer for one group."""
    rollouts = [rollout_out(rollout) for rollout in row.rollouts.order_by("index")]
    return GroupWithRollouts(**_group_fields(row), rollouts=rollouts)


def rollout_out(row: Rollout) -> RolloutOut:
    """The answer for a completion."""
    fields = {n: plain(getattr(row, n)) for n in RolloutOut.model_fields if n != "scores"}
    return RolloutOut(**fields, scores=_words(row.scores))


def _group_fields(row: RolloutGroup) -> dict[str, Any]:
    return {name: plain(getattr(row, name)) for name in GroupOut.model_fields}


def _words(value: Any) -> Any:
    """Stored numbers that are not finite, in our words; texts stay as they are.

    Texts are told from numbers by their fields: a domain may be named NaN, an estimate may not.
    """
    if isinstance(value, dict):
        return {k: plain_stored(v) if k in _NUMBERS else _words(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_words(item) for item in value]
    return value


_NUMBERS = frozenset({"value", "low", "high", "weight", "mean_length_tokens", "truncated_frac"})
