"""From scored groups to what the policy learns from: log-probabilities, advantages, rows.

Called by `training_core.train` between sampling and update. Where the algorithm has a divergence,
the policy before the update and the reference read all completions, in the same batches, so that
their distance is exactly 0 as long as they are equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random

import torch

from training_core.algorithms.advantages import Earned, Judged, earned_by, token_advantages
from training_core.contract.stages import RlStage
from training_core.losses.divergence import divergence
from training_core.models.logprobs import HeadSettings
from training_core.models.packing import TokenSequence
from training_core.rollouts.seeds import stream_seed
from training_core.session import Session
from training_core.types import PolicyRow, Rollout, RolloutGroup


@dataclass(frozen=True)
class Verdict:
    """What a step learns from."""

    groups: list[RolloutGroup]
    """With advantages."""
    rows: list[PolicyRow]
    divergence_nats: float | None
    """Mean over tokens of KL(policy || reference), k3; None without a reference."""
    coefficient: float
    """Weight of the divergence at this step."""

    def metrics(self) -> dict[str, float]:
        """What is known before the update."""
        if self.divergence_nats is None:
            return {}
        return {"kl": self.divergence_nats, "kl_coefficient": self.coefficient}


@dataclass(frozen=True)
class _Read:
    """Log-probabilities of the completions that have a say, in their order."""

    old: list[torch.Tensor]
    reference: list[torch.Tensor]


def judge_groups(
    session: Session,
    spec: RlStage,
    step: int,
    groups: Sequence[RolloutGroup],
    stale: frozenset[str] = frozenset(),
) -> Verdict:
    """Advantages of all tokens, and rows for the update.

    A rollout that is unscored, or truncated and to be masked, is in no row and no baseline.
    """
    earnings = earnings_of(session, spec, step, groups)
    places = [(group, rollout) for group in groups for rollout in group.rollouts]
    heard = [place for place, earned in zip(places, earnings, strict=True) if earned is not None]
    read = _read(session, spec, heard)
    penalties = iter(_penalties(session, spec, read))
    judged = [
        Judged(
            group.group_id,
            rollout.tokens,
            earned,
            None if earned is None else next(penalties, None),
        )
        for (group, rollout), earned in zip(places, earnings, strict=True)
    ]
    advantages = token_advantages(spec.algorithm, judged)
    rows = [
        _row(group, rollout, advantages_N, group.group_id in stale)
        for (group, rollout), advantages_N in zip(places, advantages, strict=True)
        if advantages_N is not None and rollout.tokens > 0
    ]
    if read is not None:
        rows = [
            replace(row, old_N=row.old_N if row.is_stale else old_N, reference_N=reference_N)
            for row, old_N, reference_N in zip(rows, read.old, read.reference, strict=True)
        ]
    return Verdict(
        _with_advantages(groups, iter(advantages)),
        rows,
        _mean_divergence(read),
        session.divergence_coefficient(spec.algorithm.divergence),
    )


def earnings_of(
    session: Session, spec: RlStage, step: int, groups: Sequence[RolloutGroup]
) -> list[Earned | None]:
    """What each rollout trains with; for the control experiment, dealt out at random.

    Rollouts without a say stay without one: only what was earned changes places.
    """
    limit = spec.sampling.max_new_tokens
    earnings = [
        earned_by(spec.algorithm, rollout, limit) for group in groups for rollout in group.rollouts
    ]
    if not spec.shuffle_rewards:
        return earnings
    deck = [earned for earned in earnings if earned is not None]
    Random(stream_seed(session.spec.seed, "shuffle", step)).shuffle(deck)
    return [None if earned is None else deck.pop() for earned in earnings]


def _read(
    session: Session, spec: RlStage, heard: Sequence[tuple[RolloutGroup, Rollout]]
) -> _Read | None:
    """What policy and reference say of the completions; None without a reference."""
    if session.reference is None:
        return None
    sequences = [
        TokenSequence(group.prompt_ids, rollout.completion.token_ids) for group, rollout in heard
    ]
    head = HeadSettings(spec.sampling.temperature)
    reference = replace(session.learner, policy=session.reference)
    return _Read(session.learner.logprobs(sequences, head), reference.logprobs(sequences, head))


def _penalties(session: Session, spec: RlStage, read: _Read | None) -> list[torch.Tensor]:
    """What the divergence takes off each token's reward."""
    settings = spec.algorithm.divergence
    if read is None or not settings.is_in("reward"):
        return []
    coefficient = session.divergence_coefficient(settings)
    return [
        coefficient * divergence(old_N, reference_N, settings.estimator).double().cpu()
        for old_N, reference_N in zip(read.old, read.reference, strict=True)
    ]


def _mean_divergence(read: _Read | None) -> float | None:
    """k3 over all tokens that were read."""
    if read is None or not read.old:
        return None
    apart_N = divergence(torch.cat(read.old).double(), torch.cat(read.reference).double(), "k3")
    return float(apart_N.mean())


def _row(
    group: RolloutGroup, rollout: Rollout, advantages_N: torch.Tensor, is_stale: bool
) -> PolicyRow:
    """A completion as the update takes it."""
    sampler_N = torch.tensor(rollout.completion.logprobs)
    return PolicyRow(
        TokenSequence(group.prompt_ids, rollout.completion.token_ids),
        advantages_N.float(),
        sampler_N,
        old_N=sampler_N if is_stale else None,
        is_stale=is_stale,
    )


def _with_advantages(
    groups: Sequence[RolloutGroup], advantages: Iterator[torch.Tensor | None]
) -> list[RolloutGroup]:
    """The groups with each rollout's advantage: the mean over its tokens."""

    def judged(rollout: Rollout) -> Rollout:
        found_N = next(advantages)
        if found_N is None:
            return replace(rollout, is_masked=rollout.reward is not None)
        return replace(rollout, advantage=float(found_N.mean()) if len(found_N) else 0.0)

    return [replace(group, rollouts=tuple(map(judged, group.rollouts))) for group in groups]
