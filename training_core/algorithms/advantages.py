"""From rewards to the advantage of each token, for every algorithm without a critic.

Called by `training_core.train` and a step under glass. What is judged are the rollouts of a whole
step, over all processes: baselines and deviations never depend on how work is shared out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from training_core.contract.algorithms import GroupRelativeSpec, PolicyGradientSpec
from training_core.contract.rollouts import RewardScore
from training_core.losses import advantages as outcome
from training_core.losses.returns import token_returns, token_rewards, whiten
from training_core.types import Rollout

Estimate = Callable[[outcome.Rewards, Sequence[str]], outcome.Advantages]
OUTCOME: dict[str, Estimate] = {
    "group_std": outcome.group_std,
    "group_mean": outcome.group_mean,
    "batch_std": outcome.batch_std,
    "leave_one_out": outcome.leave_one_out,
    "pass_at_k": outcome.pass_at_k,
    "max_rl": outcome.max_rl,
    "group_mean_whitened": outcome.group_mean,
}
"""Which formula serves which advantage of whole rollouts."""


@dataclass(frozen=True)
class Earned:
    """What a rollout has earned, and trains with."""

    reward: float
    """The total reward, less the overlong penalty."""
    overlong: float = 0.0
    """That penalty."""
    scores: tuple[RewardScore, ...] = ()
    """One entry for each reward leaf."""


@dataclass(frozen=True)
class Judged:
    """A rollout as the advantage sees it."""

    group_id: str
    tokens: int
    earned: Earned | None
    """None when it has no say: unscored, or masked."""
    penalty_N: torch.Tensor | None = None
    """What the divergence takes off the reward of each token; None without one in the reward."""


def earned_by(spec: PolicyGradientSpec, rollout: Rollout, max_new_tokens: int) -> Earned | None:
    """What a rollout trains with; None when it is unscored, or truncated and to be masked."""
    if rollout.reward is None or (spec.mask_truncated and rollout.is_truncated):
        return None
    overlong = overlong_penalty(spec, rollout.tokens, max_new_tokens)
    return Earned(rollout.reward - overlong, overlong, rollout.scores)


def overlong_penalty(spec: PolicyGradientSpec, tokens: int, max_new_tokens: int) -> float:
    """0 up to the last `overlong_frac` of the limit, then linear up to `overlong_penalty` at it.

    Soft overlong punishment of DAPO (Yu et al. 2025, arXiv 2503.14476), equation 13.
    """
    buffer = spec.overlong_frac * max_new_tokens
    if buffer == 0:
        return 0.0
    beyond = tokens - (max_new_tokens - buffer)
    return spec.overlong_penalty * min(1.0, max(0.0, beyond / buffer))


def token_advantages(
    spec: GroupRelativeSpec, judged: Sequence[Judged]
) -> list[torch.Tensor | None]:
    """Advantages of the tokens of each rollout (N,), float64; None for one without a say."""
    if spec.advantage == "whitened":
        return _whitened([_returns(one) for one in judged])
    group_ids = [one.group_id for one in judged]
    if spec.advantage == "per_reward":
        found = _per_reward(judged, group_ids)
    else:
        found = OUTCOME[spec.advantage]([_total(one) for one in judged], group_ids)
    rows = [
        None if value is None else torch.full((one.tokens,), value, dtype=torch.float64)
        for one, value in zip(judged, found, strict=True)
    ]
    return _whitened(rows) if spec.advantage == "group_mean_whitened" else rows


def _total(one: Judged) -> float | None:
    """The reward of a whole rollout, less the divergence summed over its tokens."""
    if one.earned is None:
        return None
    penalty = 0.0 if one.penalty_N is None else float(one.penalty_N.double().sum())
    return one.earned.reward - penalty


def _returns(one: Judged) -> torch.Tensor | None:
    """What is still to come at each token."""
    if one.earned is None:
        return None
    return token_returns(token_rewards(one.earned.reward, one.penalty_N, one.tokens))


def _per_reward(judged: Sequence[Judged], group_ids: Sequence[str]) -> outcome.Advantages:
    """Each reward leaf by itself; the overlong penalty counts as one with weight -1."""
    found = [
        {} if one.earned is None else {score.name: score.value for score in one.earned.scores}
        for one in judged
    ]
    weights = {
        score.name: score.weight for one in judged if one.earned for score in one.earned.scores
    }
    components: dict[str, outcome.Rewards] = {
        name: [scores.get(name) for scores in found] for name in weights
    }
    overlong = [None if one.earned is None else one.earned.overlong for one in judged]
    if any(overlong):
        components["overlong"], weights["overlong"] = overlong, -1.0
    return outcome.per_reward(components, weights, group_ids)


def _whitened(rows: Sequence[torch.Tensor | None]) -> list[torch.Tensor | None]:
    """Whiten over the tokens of all rows that there are."""
    found = iter(whiten([row for row in rows if row is not None]))
    return [None if row is None else next(found) for row in rows]
