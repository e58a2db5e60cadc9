"""Groups of rollouts as the tests of this folder need them."""

from __future__ import annotations

from collections.abc import Sequence

from training_core.contract.domains import Message
from training_core.contract.rollouts import FinishReason
from training_core.domains.item import PromptItem
from training_core.rollouts.engine import Completion
from training_core.types import Rollout, RolloutGroup

QUESTION = (Message(role="user", content="2 + 3 ="),)


def make_rollout(
    token_ids: Sequence[int], reward: float | None = None, finish: FinishReason = "eos"
) -> Rollout:
    """A rollout with the given tokens, each sampled with log-probability -1."""
    ids = tuple(token_ids)
    completion = Completion(ids, tuple(-1.0 for _ in ids), finish, entropy_nats=0.5 * len(ids))
    return Rollout(completion, raw="raw", text="text", reward=reward)


def make_group(
    group_id: str,
    rollouts: Sequence[Rollout],
    prompt_ids: Sequence[int] = (1, 2, 3),
    domain: str = "math/add",
) -> RolloutGroup:
    """A group of one prompt."""
    item = PromptItem(f"p-{group_id}", domain, QUESTION, "2 + 3 =", "5")
    return RolloutGroup(group_id, item, tuple(prompt_ids), tuple(rollouts))


def rewards_of(groups: Sequence[RolloutGroup]) -> list[float | None]:
    """Rewards in the groups' order."""
    return [rollout.reward for group in groups for rollout in group.rollouts]
