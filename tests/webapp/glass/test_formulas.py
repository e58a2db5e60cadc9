"""The numbers of the page are those of training, for every choice of an algorithm."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.training_core.algorithms.specs import NAMED
from tests.training_core.glass.conftest import finished
from tests.training_core.glass.test_glass_step import FIRST, Taken
from tests.webapp.glass.steps import make_result
from training_core.contract.algorithms import GroupRelativeSpec, GrpoSpec, GspoSpec
from training_core.contract.glass import GlassResult, GlassSpec
from training_core.contract.rewards import (
    LengthReward,
    RewardSpec,
    WeightedSumReward,
    WeightedTerm,
)
from training_core.contract.rundir import RunDir
from training_core.contract.stages import RlStage, SamplingSpec
from webapp.glass.chapters import dead_words, write_chapters
from webapp.glass.formulas import ADVANTAGE, OF_TOKEN, SUM, advantage_lines, loss_lines
from webapp.ui.wording import format_number

__all__ = ["finished"]

ALGORITHMS: dict[str, GroupRelativeSpec] = NAMED | {
    advantage: GrpoSpec.model_validate({"advantage": advantage}) for advantage in ADVANTAGE
}
ALGORITHMS["reinforce"] = GrpoSpec(surrogate="reinforce", reduction="sequence_mean")


LONGER = RewardSpec(
    root=WeightedSumReward(
        terms=(WeightedTerm(weight=-1.0, node=LengthReward(target_tokens=1, limit_tokens=9)),)
    )
)
"""The longer, the better, so that means are above 0 and the best stands alone."""


def spec_of(algorithm: GroupRelativeSpec, longest: int = 16) -> GlassSpec:
    stage = RlStage.model_validate(
        {"algorithm": algorithm, "sampling": SamplingSpec(max_new_tokens=longest)}
    )
    return GlassSpec.model_construct(stage=stage)


def teaching(finished: RunDir, tmp_path: Path, algorithm: GroupRelativeSpec) -> Taken:
    """The first step that teaches something: two longest completions add nothing to the best."""
    for step in range(FIRST, FIRST + 4):
        taken = Taken(finished, tmp_path / str(step), step, reward=LONGER, algorithm=algorithm)
        if not taken.result.is_dead:
            return taken
    raise AssertionError("no step teaches anything")


@pytest.mark.parametrize("name", ALGORITHMS)
def test_the_loss_of_the_page_is_the_loss_of_training(
    name: str, finished: RunDir, tmp_path: Path
) -> None:
    taken = teaching(finished, tmp_path, ALGORITHMS[name])
    *_, found, reported = loss_lines(taken.spec, taken.result)
    assert taken.result.grad_norm > 0
    value = float(found.rpartition("= ")[2].replace("−", "-"))
    assert value == pytest.approx(taken.result.loss, rel=2e-3, abs=1e-6)
    assert format_number(taken.result.loss) in reported


@pytest.mark.parametrize("name", ALGORITHMS)
def test_the_advantage_of_the_page_is_that_of_training(
    name: str, finished: RunDir, tmp_path: Path
) -> None:
    taken = teaching(finished, tmp_path, ALGORITHMS[name])
    last = advantage_lines(taken.spec, taken.result)[-1].partition(" = ")[2]
    terms, _, value = last.replace("−", "-").replace("+", " + ").rpartition("=")
    wanted = max((one.advantage or 0.0 for one in taken.result.completions), key=abs)
    assert float(value.replace(" + ", "")) == pytest.approx(wanted, rel=2e-3)
    if terms:
        assert eval(terms) == pytest.approx(wanted, rel=5e-3)
    assert {one.part for one in taken.result.sources} >= {"advantages", "surrogate", "reduction"}


def test_every_choice_has_its_formula() -> None:
    fields = GrpoSpec.model_json_schema()["properties"]
    for table, field in ((ADVANTAGE, "advantage"), (SUM, "reduction"), (OF_TOKEN, "surrogate")):
        assert set(table) == set(fields[field]["enum"])


def words_of(algorithm: GroupRelativeSpec, result: GlassResult) -> str:
    chapters = write_chapters(spec_of(algorithm), result)
    return " ".join(word for chapter in chapters for word in chapter.words)


def test_what_a_run_has_and_a_single_step_has_not_is_said() -> None:
    result = make_result()
    pulled = GrpoSpec.model_validate({"divergence": {"coefficient": 0.1}})
    assert "policy and reference are equal" in words_of(pulled, result)
    assert "entropy bonus" in words_of(GrpoSpec(entropy_coefficient=0.1), result)
    assert "over the whole step" in words_of(GrpoSpec(advantage="batch_std"), result)
    assert "nothing to clip" in words_of(GrpoSpec(surrogate="reinforce"), result)
    plain = words_of(GspoSpec(), result)
    assert not any(words in plain for words in ("reference", "entropy bonus", "whole step"))


def test_masked_and_penalised_completions_are_counted() -> None:
    result = make_result()
    first, second, *others = result.completions
    changed = (
        first.model_copy(update={"is_counted": False, "advantage": None}),
        second.model_copy(update={"trained_reward": -0.5}),
        *others,
    )
    found = words_of(GrpoSpec(), result.model_copy(update={"completions": changed}))
    assert "1 cut off and masked" in found
    assert "came off 1 reward before" in found


@pytest.mark.parametrize(
    ("algorithm", "rewards", "words"),
    [
        (GrpoSpec(), (0.3, 0.3, 0.3, 0.3), "All rewards are 0.300"),
        (GrpoSpec(advantage="pass_at_k"), (1.0, 1.0, 0.0, 0.0), "share the best reward"),
        (GrpoSpec(advantage="max_rl"), (-1.0, 0.0, -1.0, 0.0), "not above 0"),
        (GrpoSpec(), (None, None, None, None), "No completion has a reward"),
    ],
)
def test_why_a_group_teaches_nothing(
    algorithm: GroupRelativeSpec, rewards: tuple[float | None, ...], words: str
) -> None:
    result = make_result(rewards)
    dead = tuple(
        one.model_copy(update={"advantage": None if one.reward is None else 0.0})
        for one in result.completions
    )
    result = result.model_copy(update={"completions": dead})
    spec = spec_of(algorithm)
    spec = GlassSpec.model_construct(stage=spec.stage)
    assert words in dead_words(spec, result)[0]
