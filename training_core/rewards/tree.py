"""The reward tree: leaves scored, nodes joined, nothing raised.

Called by the trainer and the evaluator for each completion. A leaf that fails is unscored and says
why; what an unscored leaf does to the total is the node's decision (`on_unscored`), never a 0.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from training_core.catalog import REWARDS
from training_core.contract.rewards import (
    RewardLeaf,
    RewardNode,
    RewardSpec,
    WeightedSumReward,
)
from training_core.contract.rollouts import RewardScore
from training_core.rewards.completion import CompletionView, LeafScore, unscored


class TreeScore(NamedTuple):
    """What a completion is worth, in total and leaf by leaf."""

    total: float | None
    """The reward; None when unscored."""
    scores: tuple[RewardScore, ...]
    """One entry for each leaf, left to right; its weight is the product along its path."""


def score_tree(spec: RewardSpec, view: CompletionView) -> TreeScore:
    """Score one completion. Never raises."""
    scores: list[RewardScore] = []
    total = _score_node(spec.root, view, 1.0, scores)
    return TreeScore(total, tuple(scores))


def _score_node(
    node: RewardNode, view: CompletionView, weight: float, scores: list[RewardScore]
) -> float | None:
    """Value of a node; its leaves' scores are added to the list."""
    if isinstance(node, WeightedSumReward):
        values = [_score_node(t.node, view, weight * t.weight, scores) for t in node.terms]
        return _weighted_sum(node, values)
    leaf = _score_leaf(node, view)
    scores.append(
        RewardScore(
            name=node.name,
            weight=weight,
            status=leaf.status,
            value=leaf.value,
            explanation=leaf.explanation,
        )
    )
    return leaf.value


def _score_leaf(node: RewardLeaf, view: CompletionView) -> LeafScore:
    """One leaf's score; an exception or a value that is not finite leaves it unscored."""
    try:
        leaf = REWARDS[node.type](node, view)
    except Exception as error:
        return unscored("error", f"{type(error).__name__}: {error}"[:300])
    if leaf.value is not None and not math.isfinite(leaf.value):
        return unscored("error", f"the score {leaf.value} is not finite")
    return leaf


def _weighted_sum(node: WeightedSumReward, values: list[float | None]) -> float | None:
    """Sum of weight times value. A child of weight 0 is only watched and decides nothing.

    renormalise: the sum over the scored children times (sum of all |w|) / (sum of their |w|).
    """
    terms = [(t.weight, value) for t, value in zip(node.terms, values, strict=True) if t.weight]
    known = [(weight, value) for weight, value in terms if value is not None]
    if not known or (len(known) < len(terms) and node.on_unscored == "drop"):
        return None
    total = math.fsum(weight * value for weight, value in known)
    if len(known) == len(terms):
        return total
    return total * sum(abs(w) for w, _ in terms) / sum(abs(w) for w, _ in known)
