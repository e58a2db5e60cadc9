"""From prompts to groups of scored rollouts.

Called by `training_core.train` and `training_core.evaluate`: `collect_groups` samples and decodes,
`score_groups` asks the reward tree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from training_core.contract.rewards import RewardSpec
from training_core.domains.item import PromptItem
from training_core.models.chat import prompt_ids
from training_core.models.policy import Policy
from training_core.rewards.completion import CompletionView
from training_core.rewards.tree import score_tree
from training_core.rollouts.engine import (
    Completion,
    GenerationSettings,
    OnTokens,
    Progress,
    Request,
    generate,
)
from training_core.types import Rollout, RolloutGroup


@dataclass(frozen=True)
class PromptRequest:
    """A prompt to be completed, with the ids and seeds that its rollouts get."""

    group_id: str
    item: PromptItem
    seeds: tuple[int, ...]


def collect_groups(
    policy: Policy,
    prompts: Sequence[PromptRequest],
    settings: GenerationSettings,
    progress: Progress,
    on_tokens: OnTokens | None = None,
) -> list[RolloutGroup]:
    """Sample every completion of every prompt, without scores yet."""
    requests = [
        Request(prompt_ids(policy.tokenizer, prompt.item.messages), prompt.seeds)
        for prompt in prompts
    ]
    completions = generate(policy, requests, settings, progress, on_tokens)
    return [
        RolloutGroup(
            prompt.group_id,
            prompt.item,
            request.prompt_ids,
            tuple(decode_rollout(policy, completion) for completion in group),
        )
        for prompt, request, group in zip(prompts, requests, completions, strict=True)
    ]


def score_groups(
    spec: RewardSpec, groups: Sequence[RolloutGroup], progress: Callable[[int], None]
) -> list[RolloutGroup]:
    """The groups with scores; a reward that fails leaves its rollout unscored."""
    scored: list[RolloutGroup] = []
    done = 0
    for group in groups:
        rollouts = tuple(_score(spec, group.item, rollout) for rollout in group.rollouts)
        scored.append(replace(group, rollouts=rollouts))
        done += len(rollouts)
        progress(done)
    return scored


def decode_rollout(policy: Policy, completion: Completion) -> Rollout:
    """A completion with its texts, without scores."""
    decode = policy.tokenizer.decode
    ids = list(completion.token_ids)
    return Rollout(
        completion,
        raw=decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False),
        text=decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False),
    )


def _score(spec: RewardSpec, item: PromptItem, rollout: Rollout) -> Rollout:
    view = CompletionView(
        text=rollout.text,
        answer=item.answer,
        tokens=rollout.tokens,
        finish_reason=rollout.completion.finish_reason,
        raw=rollout.raw,
        metadata=item.metadata,
    )
    found = score_tree(spec, view)
    return replace(rollout, scores=found.scores, reward=found.total)
