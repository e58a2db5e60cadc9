"""Rollout groups in the database: once each, hidden when superseded, always storable."""

from __future__ import annotations

import math

import pytest

from tests.webapp.stories import launch, make_group
from training_core.contract.rollouts import RewardScore, RolloutGroupRecord
from webapp.accounts.models import User
from webapp.rollouts.models import Rollout, RolloutGroup
from webapp.rollouts.services import add_groups, delete_run, supersede_after
from webapp.runs.models import Run


@pytest.fixture
def run(ada: User) -> Run:
    return launch(ada)


def group(step: int = 1, index: int = 0, **changes: object) -> RolloutGroupRecord:
    return make_group(step, index, "train", 4, "rl").model_copy(update=changes)


def test_groups_are_stored_with_their_counts(run: Run) -> None:
    record = group()
    assert add_groups(run.pk, 1, [record]) == 1
    row = RolloutGroup.objects.get()
    assert row.size == 4
    assert row.passed == sum(r.passed is True for r in record.rollouts)
    assert row.truncated == sum(r.finish_reason == "length" for r in record.rollouts)
    assert [r.completion for r in row.rollouts.order_by("index")] == [
        r.completion for r in record.rollouts
    ]


def test_telling_twice_changes_nothing(run: Run) -> None:
    assert add_groups(run.pk, 1, [group(), group(1, 1)]) == 2
    assert add_groups(run.pk, 1, [group(), group(1, 2)]) == 1
    assert (RolloutGroup.objects.count(), Rollout.objects.count()) == (3, 12)
    assert add_groups(run.pk, 2, [group()]) == 1  # another attempt is another group


def test_a_group_told_twice_in_one_call_is_one(run: Run) -> None:
    assert add_groups(run.pk, 1, [group(), group()]) == 1


def test_only_later_steps_of_earlier_attempts_are_superseded(run: Run) -> None:
    for step in (1, 2, 3):
        add_groups(run.pk, 1, [group(step)])
    add_groups(run.pk, 2, [group(3)])
    assert supersede_after(run.pk, 2, 2) == 1
    shown = RolloutGroup.objects.filter(superseded=False).order_by("step", "attempt")
    assert [(g.step, g.attempt) for g in shown] == [(1, 1), (2, 1), (3, 2)]
    assert supersede_after(run.pk, 2, 2) == 0


def test_another_runs_rollouts_are_left_alone(run: Run, ada: User) -> None:
    other = launch(ada, "other")
    add_groups(run.pk, 1, [group()])
    add_groups(other.pk, 1, [group()])
    supersede_after(run.pk, 2, 0)
    delete_run(run.pk)
    assert RolloutGroup.objects.get().run_id == other.pk
    assert not RolloutGroup.objects.get().superseded


def test_what_postgresql_cannot_hold_becomes_visible(run: Run) -> None:
    record = group()
    bad = "nul \0 half \ud800 end"
    rollout = record.rollouts[0].model_copy(
        update={
            "completion": bad,
            "text": bad,
            "reward": math.nan,
            "advantage": math.inf,
            "scores": (
                RewardScore(
                    name="r", weight=math.inf, status="ok", value=math.nan, explanation=bad
                ),
            ),
        }
    )
    add_groups(run.pk, 1, [record.model_copy(update={"rollouts": (rollout,), "answer": bad})])
    row = Rollout.objects.get()
    assert row.completion == "nul ␀ half \ufffd end"
    assert math.isnan(row.reward or 0)
    assert row.advantage == math.inf
    assert row.scores[0]["value"] == "NaN"
    assert row.scores[0]["explanation"] == "nul ␀ half \ufffd end"


def test_unscored_is_not_zero(run: Run) -> None:
    record = group()
    rollout = record.rollouts[0].model_copy(update={"reward": None, "passed": None})
    add_groups(run.pk, 1, [record.model_copy(update={"rollouts": (rollout,), "reward_mean": None})])
    row = RolloutGroup.objects.get()
    assert (row.unscored, row.passed, row.reward_mean) == (1, 0, None)
    assert row.rollouts.get().reward is None
