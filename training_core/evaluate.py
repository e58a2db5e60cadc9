"""Held-out evaluation inside a run: the same prompts, the same sampling, item by item.

Called by `training_core.boundary`. Each result carries its interval, and the change against the
base model and against the end of each earlier stage on the same items. Sampling seeds belong to the
item, not to the run, so that two evaluations differ by their weights alone.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from training_core.contract.events import DomainResult, Interval, PairedDifference
from training_core.contract.rewards import iter_leaves
from training_core.contract.spec import RunSpec
from training_core.domains.item import PromptItem
from training_core.models.policy import Policy
from training_core.rollouts.collect import PromptRequest, collect_groups, score_groups
from training_core.rollouts.engine import GenerationSettings
from training_core.rollouts.seeds import stream_seed
from training_core.state import PastEvaluation
from training_core.stats.intervals import bootstrap_mean, paired_bootstrap, wilson_interval
from training_core.types import Rollout, RolloutGroup

FIRST_CHUNK_ROLLOUTS = 16
"""The first rollouts of an evaluation are few, so that something can be read within seconds."""
CHUNK_ROLLOUTS = 96
EVALUATION_SEED = 0


@dataclass(frozen=True)
class EvaluationOutcome:
    """What an evaluation found."""

    results: tuple[DomainResult, ...]
    """First `all`, then each domain."""
    passes: dict[str, dict[str, float]]
    """Domain to prompt id to share of passes."""
    rollouts: int
    """Completions, scored or not."""

    @property
    def overall(self) -> DomainResult:
        """All domains together."""
        return self.results[0]


class Evaluator:
    """The held-out side of a run."""

    def __init__(self, spec: RunSpec, items: Mapping[str, Sequence[PromptItem]]) -> None:
        self._spec = spec
        self._items = [item for domain in items.values() for item in domain]
        self.recipe = recipe_hash(spec, self._items)

    @property
    def rollouts(self) -> int:
        """Completions of one evaluation."""
        return len(self._items) * self._spec.evaluation.samples_per_prompt

    def passed(self, rollout: Rollout) -> bool | None:
        """Whether a rollout counts as success; None when its success reward failed."""
        value = rollout.value(self._spec.evaluation.success_reward)
        return None if value is None else value >= self._spec.evaluation.success_threshold

    def run(
        self,
        policy: Policy,
        *,
        name: str,
        earlier: Sequence[PastEvaluation],
        on_progress: Callable[[int, int], None],
        on_groups: Callable[[list[RolloutGroup]], None],
    ) -> EvaluationOutcome:
        """Sample and score all items; `name` makes group ids unique in the run.

        `on_progress(rollouts done, tokens)` may raise to abandon; `on_groups` gets each chunk.
        """
        groups: list[RolloutGroup] = []
        done = tokens = 0
        for prompts in self._chunks(name):
            found = collect_groups(
                policy,
                prompts,
                self._settings(),
                lambda rows, count, d=done, t=tokens: on_progress(d + rows, t + count),  # type: ignore[misc]
            )
            scored = score_groups(self._spec.reward, found, lambda _: None)
            on_groups(scored)
            groups += scored
            done += sum(len(group.rollouts) for group in scored)
            tokens += sum(r.tokens for group in scored for r in group.rollouts)
        return self._summarise(groups, earlier)

    def _settings(self) -> GenerationSettings:
        evaluation = self._spec.evaluation
        return GenerationSettings(evaluation.max_new_tokens, evaluation.temperature, CHUNK_ROLLOUTS)

    def _chunks(self, name: str) -> Iterable[list[PromptRequest]]:
        """Prompts in pieces; the first piece is small."""
        samples = self._spec.evaluation.samples_per_prompt
        prompts = [
            PromptRequest(
                f"{name}-{index:05d}",
                item,
                tuple(
                    stream_seed(EVALUATION_SEED, "evaluate", item.domain, item.prompt_id, sample)
                    for sample in range(samples)
                ),
            )
            for index, item in enumerate(self._items)
        ]
        size = max(1, FIRST_CHUNK_ROLLOUTS // samples)
        while prompts:
            yield prompts[:size]
            prompts = prompts[size:]
            size = max(1, CHUNK_ROLLOUTS // samples)

    def _summarise(
        self, groups: Sequence[RolloutGroup], earlier: Sequence[PastEvaluation]
    ) -> EvaluationOutcome:
        domains = list(dict.fromkeys(group.item.domain for group in groups))
        passes = {
            domain: self._item_passes([g for g in groups if g.item.domain == domain])
            for domain in domains
        }
        anchors = [past for past in earlier if past.is_anchor and past.recipe == self.recipe]
        results = [self._result("all", groups, passes, anchors)]
        for domain in domains:
            own = [group for group in groups if group.item.domain == domain]
            results.append(self._result(domain, own, {domain: passes[domain]}, anchors))
        rollouts = sum(len(group.rollouts) for group in groups)
        return EvaluationOutcome(tuple(results), passes, rollouts)

    def _item_passes(self, groups: Sequence[RolloutGroup]) -> dict[str, float]:
        """Prompt id to share of passes among its scored completions."""
        found: dict[str, float] = {}
        for group in groups:
            passed = [p for r in group.rollouts if (p := self.passed(r)) is not None]
            if passed:
                found[group.item.prompt_id] = sum(passed) / len(passed)
        return found

    def _result(
        self,
        domain: str,
        groups: Sequence[RolloutGroup],
        passes: Mapping[str, Mapping[str, float]],
        anchors: Sequence[PastEvaluation],
    ) -> DomainResult:
        """Summary of some groups, compared with earlier evaluations of the same items."""
        rollouts = [rollout for group in groups for rollout in group.rollouts]
        shares = [share for items in passes.values() for share in items.values()]
        names = [leaf.name for leaf in iter_leaves(self._spec.reward.root)]
        return DomainResult(
            domain=domain,
            pass_at_1=wilson_interval(sum(shares), len(shares)),
            reward=_mean_of_items(groups, lambda rollout: rollout.reward),
            components={
                name: _mean_of_items(groups, lambda r, n=name: r.value(n))  # type: ignore[misc]
                for name in names
            },
            unscored=sum(rollout.reward is None for rollout in rollouts),
            mean_length_tokens=sum(r.tokens for r in rollouts) / len(rollouts),
            truncated_frac=sum(r.is_truncated for r in rollouts) / len(rollouts),
            compared=tuple(
                PairedDifference(
                    against_step=past.step,
                    against_label=past.title,
                    difference=_paired(past.passes, passes),
                )
                for past in anchors
            ),
        )


def evaluation_metrics(outcome: EvaluationOutcome) -> dict[str, float]:
    """The results as metrics."""
    overall = outcome.overall
    values = {
        "eval/pass@1": overall.pass_at_1.value,
        "eval/reward": overall.reward.value,
        "eval/completion_length": overall.mean_length_tokens,
        "eval/clipped_ratio": overall.truncated_frac,
        "eval/unscored": overall.unscored / outcome.rollouts,
    }
    for name, interval in overall.components.items():
        values[f"eval/rewards/{name}"] = interval.value
    for result in outcome.results[1:]:
        values[f"domain/{result.domain}/eval/pass@1"] = result.pass_at_1.value
        values[f"domain/{result.domain}/eval/reward"] = result.reward.value
    return values


def recipe_hash(spec: RunSpec, items: Sequence[PromptItem]) -> str:
    """What two evaluations must share to be compared: items, prompts, sampling, rewards."""
    evaluation = spec.evaluation
    content = {
        "items": [
            (item.domain, item.prompt_id, [turn.model_dump() for turn in item.messages])
            for item in items
        ],
        "answers": [item.answer for item in items],
        "samples": evaluation.samples_per_prompt,
        "temperature": evaluation.temperature,
        "max_new_tokens": evaluation.max_new_tokens,
        "success": (evaluation.success_reward, evaluation.success_threshold),
        "reward": spec.reward.model_dump(mode="json"),
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def _mean_of_items(
    groups: Sequence[RolloutGroup], value: Callable[[Rollout], float | None]
) -> Interval:
    """Mean over items of each item's mean over scored completions, with a bootstrap interval."""
    means = []
    for group in groups:
        scored = [v for rollout in group.rollouts if (v := value(rollout)) is not None]
        if scored:
            means.append(math.fsum(scored) / len(scored))
    return bootstrap_mean(means, seed=EVALUATION_SEED)


def _paired(
    before: Mapping[str, Mapping[str, float]], after: Mapping[str, Mapping[str, float]]
) -> Interval:
    """Paired difference of pass@1 over the items that both evaluations scored."""
    pairs = [
        (before[domain][prompt_id], share)
        for domain, items in after.items()
        for prompt_id, share in items.items()
        if prompt_id in before.get(domain, {})
    ]
    return paired_bootstrap([b for b, _ in pairs], [a for _, a in pairs], seed=EVALUATION_SEED)
