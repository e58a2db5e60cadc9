"""Right answers that a reward cannot work with, found before a run is launched.

Called by the launch check with a sample of a domain's answers. A domain of words under a reward
that compares numbers would leave every rollout unscored and teach nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from training_core.contract.rewards import RewardSpec
from training_core.rewards.completion import CompletionView
from training_core.rewards.tree import score_tree


class GoldFault(NamedTuple):
    """One reward that cannot use some of the answers."""

    reward: str
    """Name of the reward."""
    bad: int
    """Answers that it cannot use."""
    explanation: str
    """What it says about the first of them."""


def gold_faults(spec: RewardSpec, answers: Sequence[str]) -> list[GoldFault]:
    """Each reward with the answers that it calls bad, in the order of the tree."""
    first: dict[str, str] = {}
    count: dict[str, int] = {}
    for answer in answers:
        for score in score_tree(spec, CompletionView(text="", answer=answer, tokens=0)).scores:
            if score.status == "gold_bad":
                first.setdefault(score.name, score.explanation)
                count[score.name] = count.get(score.name, 0) + 1
    return [GoldFault(name, count[name], explanation) for name, explanation in first.items()]
