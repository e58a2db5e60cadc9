from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from tests.training_core.rewards.views import view
from training_core import catalog
from training_core.contract.rewards import (
    CorrectnessReward,
    FormatReward,
    LengthReward,
    MatchReward,
    RewardNode,
    RewardSpec,
    WeightedSumReward,
    WeightedTerm,
)
from training_core.rewards.completion import LeafScore, scored
from training_core.rewards.tree import score_tree

GOOD = "<answer>15</answer>"


def weighted(*terms: tuple[float, RewardNode], **settings: Any) -> WeightedSumReward:
    return WeightedSumReward(
        terms=tuple(WeightedTerm(weight=weight, node=node) for weight, node in terms), **settings
    )


def score(root: RewardNode, text: str, answer: str = "15", tokens: int = 8) -> Any:
    return score_tree(RewardSpec(root=root), view(text, answer, tokens))


@pytest.fixture
def length_leaf(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[..., LeafScore]], None]:
    """Put another function in the place of the length leaf."""
    return lambda function: monkeypatch.setitem(catalog.REWARDS, "length", function)


def test_a_leaf_alone_is_the_total() -> None:
    result = score(CorrectnessReward(), GOOD)
    assert result.total == 1.0
    assert [(s.name, s.weight, s.status, s.value) for s in result.scores] == [
        ("correctness", 1.0, "ok", 1.0)
    ]


@pytest.mark.parametrize(
    ("text", "total"),
    [(GOOD, 1.0), ("<answer>14</answer>", 0.3), (f"so {GOOD}", 0.7), ("", 0.0)],
)
def test_weighted_sum(text: str, total: float) -> None:
    root = weighted((0.7, CorrectnessReward()), (0.3, FormatReward()))
    assert score(root, text).total == pytest.approx(total, abs=1e-12)


def test_weights_multiply_along_the_path() -> None:
    inner = weighted((0.5, FormatReward()), (-2.0, LengthReward(target_tokens=2, limit_tokens=4)))
    result = score(weighted((3.0, CorrectnessReward()), (0.5, inner)), GOOD)
    assert [(s.name, s.weight) for s in result.scores] == [
        ("correctness", 3.0),
        ("format", 0.25),
        ("length", -1.0),
    ]
    assert result.total == 3.0 + 0.25 + 1.0
    assert result.total == math.fsum(s.weight * s.value for s in result.scores)


def test_an_unscored_child_drops_the_rollout() -> None:
    root = weighted((0.7, CorrectnessReward()), (0.3, FormatReward()))
    result = score(root, GOOD, answer="not a number")
    assert result.total is None
    assert [s.status for s in result.scores] == ["gold_bad", "ok"]
    assert [s.value for s in result.scores] == [None, 1.0]


def test_renormalise_rescales_the_other_weights() -> None:
    root = weighted(
        (0.6, CorrectnessReward()),
        (0.3, FormatReward()),
        (0.1, LengthReward(target_tokens=1, limit_tokens=2)),
        on_unscored="renormalise",
    )
    # (0.3 * 1 + 0.1 * -1) * (0.6 + 0.3 + 0.1) / (0.3 + 0.1)
    assert score(root, GOOD, answer="?").total == pytest.approx(0.5)
    # with everything scored nothing is rescaled
    assert score(root, GOOD).total == pytest.approx(0.6 + 0.3 - 0.1)


def test_nothing_scored_is_unscored_however_it_is_joined() -> None:
    for rule in ("drop", "renormalise"):
        root = weighted((1.0, CorrectnessReward()), on_unscored=rule)
        assert score(root, GOOD, answer="?").total is None


def test_an_unscored_inner_sum_counts_as_one_unscored_child() -> None:
    inner = weighted((1.0, CorrectnessReward()), (1.0, CorrectnessReward(name="again")))
    root = weighted((1.0, inner), (0.5, FormatReward()), on_unscored="renormalise")
    assert score(root, GOOD, answer="?").total == pytest.approx(1.5)


def test_a_child_of_weight_0_is_only_watched() -> None:
    root = weighted((1.0, FormatReward()), (0.0, CorrectnessReward()))
    result = score(root, GOOD, answer="?")
    assert result.total == 1.0
    assert [s.status for s in result.scores] == ["ok", "gold_bad"]


def test_an_exception_is_unscored_and_named(length_leaf: Any) -> None:
    def broken(spec: Any, seen: Any) -> LeafScore:
        raise ZeroDivisionError("division by zero")

    length_leaf(broken)
    result = score(weighted((1.0, FormatReward()), (1.0, LengthReward())), GOOD)
    assert result.total is None
    assert result.scores[1].status == "error"
    assert result.scores[1].value is None
    assert result.scores[1].explanation == "ZeroDivisionError: division by zero"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_score_that_is_not_finite_is_an_error(length_leaf: Any, value: float) -> None:
    length_leaf(lambda *_: scored(value, "?"))
    result = score(LengthReward(), GOOD)
    assert (result.total, result.scores[0].status) == (None, "error")
    assert "is not finite" in result.scores[0].explanation


def test_every_leaf_type_of_the_contract_is_in_the_catalogue() -> None:
    leaves = (CorrectnessReward(), FormatReward(), LengthReward(), MatchReward())
    assert {leaf.type for leaf in leaves} == set(catalog.REWARDS)
