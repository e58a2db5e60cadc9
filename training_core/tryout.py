"""A tryout: what the base model makes of rows of a dataset, before anything is trained.

Called by `workers.glass_main`. Made of the functions that sample and score in training
(`collect_groups`, `score_groups`), at the temperature and length of the run that is thought of, so
that what is seen here is what its first step would see. The share that passes has the interval of
an evaluation: over rows, several completions of one row averaged first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Protocol

from training_core.contract.events import Interval
from training_core.contract.glass import GlassPhase
from training_core.contract.rewards import iter_leaves
from training_core.contract.tryout import TryoutResult, TryoutRow, TryoutSpec, TryoutTry
from training_core.domains.dataset import make_item
from training_core.models.device import ComputePlan
from training_core.models.policy import Policy
from training_core.rollouts.collect import PromptRequest, collect_groups, score_groups
from training_core.rollouts.engine import GenerationSettings
from training_core.rollouts.seeds import stream_seed
from training_core.stats.intervals import wilson_interval
from training_core.types import Rollout, RolloutGroup


class SamplingOnlooker(Protocol):
    """Told how far sampling and scoring are."""

    seconds: dict[str, float]

    def begin(self, phase: GlassPhase, total: int = 0) -> None:
        """A phase begins."""

    def update(self, done: int, total: int | None = None) -> None:
        """So much of it is done."""

    def expect(
        self, prompts: int, completions: int, decode: Callable[[Sequence[int]], str]
    ) -> None:
        """So many completions of each of so many prompts will grow."""

    def grow(self, places: Sequence[tuple[int, int]], tokens: Sequence[int]) -> None:
        """One token more of each unfinished completion."""

    def finish(self) -> None:
        """All is done."""


def try_base(
    policy: Policy, plan: ComputePlan, spec: TryoutSpec, onlooker: SamplingOnlooker
) -> TryoutResult:
    """Sample and score all tries. Raises BadData for a prompt without room, OutOfMemory."""
    total = len(spec.records) * spec.tries
    onlooker.expect(len(spec.records), spec.tries, policy.raw_text)
    onlooker.begin("sample", total)
    settings = GenerationSettings(
        spec.sampling.max_new_tokens, spec.sampling.temperature, max_rows=total
    )
    groups = collect_groups(
        policy,
        _requests(spec),
        settings,
        lambda done, _: onlooker.update(done),
        on_tokens=onlooker.grow,
    )
    onlooker.begin("score", total)
    groups = score_groups(spec.run.reward, groups, onlooker.update)
    onlooker.finish()
    rows = tuple(_row(policy, spec, group) for group in groups)
    return TryoutResult(
        architecture=policy.facts.architecture,
        parameters=policy.facts.parameters,
        device=plan.device_words,
        compute_dtype=plan.dtype_name,
        rows=rows,
        pass_at_1=pass_share(rows),
        components=_components(spec, groups),
        seconds=dict(onlooker.seconds),
    )


def pass_share(rows: Sequence[TryoutRow]) -> Interval:
    """Mean over rows of each row's share of passes among its scored tries, with Wilson's interval
    over rows."""
    shares = []
    for row in rows:
        passed = [one.passed for one in row.tries if one.passed is not None]
        if passed:
            shares.append(sum(passed) / len(passed))
    return wilson_interval(sum(shares), len(shares))


def _requests(spec: TryoutSpec) -> list[PromptRequest]:
    """Each row with the seeds of its tries: they hang on the row and on the run's seed alone."""
    return [
        PromptRequest(
            f"tryout-{place}",
            make_item(spec.domain, record),
            tuple(
                stream_seed(spec.run.seed, "tryout", record.record_id, index)
                for index in range(spec.tries)
            ),
        )
        for place, record in enumerate(spec.records)
    ]


def _row(policy: Policy, spec: TryoutSpec, group: RolloutGroup) -> TryoutRow:
    """One row for the page."""
    return TryoutRow(
        record_id=group.item.prompt_id,
        messages=group.item.messages,
        prompt=policy.raw_text(group.prompt_ids),
        prompt_tokens=len(group.prompt_ids),
        answer=group.item.answer,
        tries=tuple(_try(spec, rollout) for rollout in group.rollouts),
    )


def _try(spec: TryoutSpec, rollout: Rollout) -> TryoutTry:
    """One completion for the page."""
    evaluation = spec.run.evaluation
    value = rollout.value(evaluation.success_reward)
    return TryoutTry(
        text=rollout.text,
        tokens=rollout.tokens,
        finish_reason=rollout.completion.finish_reason,
        scores=rollout.scores,
        reward=rollout.reward,
        passed=None if value is None else value >= evaluation.success_threshold,
    )


def _components(spec: TryoutSpec, groups: Sequence[RolloutGroup]) -> dict[str, float | None]:
    """Mean of each reward leaf over the tries that it could score."""
    found: dict[str, float | None] = {}
    for leaf in iter_leaves(spec.run.reward.root):
        values = [
            value
            for group in groups
            for rollout in group.rollouts
            if (value := rollout.value(leaf.name)) is not None
        ]
        found[leaf.name] = math.fsum(values) / len(values) if values else None
    return found
