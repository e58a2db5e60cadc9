"""GRPO: who gets which advantage, who is learnt from, who is counted."""

from __future__ import annotations

import pytest
import torch

from tests.training_core.algorithms.rollout_groups import make_group, make_rollout, rewards_of
from training_core.algorithms.grpo import Grpo
from training_core.algorithms.select import select_algorithm
from training_core.contract.stages import GrpoSpec
from training_core.types import RolloutGroup


def assigned(spec: GrpoSpec, groups: list[RolloutGroup]) -> list[RolloutGroup]:
    return Grpo(spec).assign_advantages(groups, rewards_of(groups))


def advantages(groups: list[RolloutGroup]) -> list[list[float | None]]:
    return [[rollout.advantage for rollout in group.rollouts] for group in groups]


def test_the_spec_chooses_the_algorithm() -> None:
    spec = GrpoSpec(clip_high=0.28)
    found = select_algorithm(spec)
    assert isinstance(found, Grpo)
    assert found.spec is spec


def test_each_group_is_its_own_measure() -> None:
    groups = [
        make_group("a", [make_rollout([5], 1.0), make_rollout([6], 0.0)]),
        make_group(
            "b", [make_rollout([5], 10.0), make_rollout([6], None), make_rollout([7], 30.0)]
        ),
    ]
    found = assigned(GrpoSpec(advantage="group_mean"), groups)
    assert advantages(found) == [[0.5, -0.5], [-10.0, None, 10.0]]
    assert [group.group_id for group in found] == ["a", "b"]


def test_two_groups_of_the_same_prompt_stay_two() -> None:
    groups = [
        make_group("a", [make_rollout([5], 1.0), make_rollout([6], 1.0)]),
        make_group("b", [make_rollout([5], 0.0), make_rollout([6], 0.0)]),
    ]
    assert advantages(assigned(GrpoSpec(), groups)) == [[0.0, 0.0], [0.0, 0.0]]


def test_rewards_that_are_handed_over_count_not_those_of_the_rollouts() -> None:
    groups = [make_group("a", [make_rollout([5], 9.0), make_rollout([6], 9.0)])]
    found = Grpo(GrpoSpec(advantage="group_mean")).assign_advantages(groups, [0.0, 1.0])
    assert advantages(found) == [[-0.5, 0.5]]
    assert rewards_of(found) == [9.0, 9.0]


def test_a_group_without_spread_is_skipped_but_counted() -> None:
    """Its gradient is 0, its tokens are part of the mean."""
    groups = [
        make_group("a", [make_rollout([5, 6], 1.0), make_rollout([7, 8, 9], 0.0)]),
        make_group("b", [make_rollout([5] * 7, 1.0), make_rollout([6] * 8, 1.0)]),
    ]
    batch = Grpo(GrpoSpec()).build_batch(assigned(GrpoSpec(), groups))
    assert [sequence.completion_ids for sequence in batch.sequences] == [(5, 6), (7, 8, 9)]
    assert batch.divisor_tokens == 2 + 3 + 7 + 8


def test_unscored_rollouts_are_in_neither() -> None:
    groups = [
        make_group(
            "a", [make_rollout([5], 1.0), make_rollout([6] * 9, None), make_rollout([7], 0.0)]
        )
    ]
    batch = Grpo(GrpoSpec()).build_batch(assigned(GrpoSpec(), groups))
    assert [sequence.completion_ids for sequence in batch.sequences] == [(5,), (7,)]
    assert batch.divisor_tokens == 2


@pytest.mark.parametrize(("mask", "kept", "divisor"), [(True, 1, 2), (False, 2, 11)])
def test_truncated_rollouts_may_be_left_out_of_both(mask: bool, kept: int, divisor: int) -> None:
    groups = [
        make_group("a", [make_rollout([5, 6], 1.0), make_rollout([7] * 9, 0.0, finish="length")])
    ]
    spec = GrpoSpec(mask_truncated=mask)
    scored = assigned(spec, groups)
    batch = Grpo(spec).build_batch(scored)
    assert len(batch.sequences) == kept
    assert batch.divisor_tokens == divisor
    # Its reward still is part of the group's baseline.
    assert advantages(scored)[0][0] == pytest.approx(0.5**0.5, abs=1e-5)


def test_batch_holds_prompt_advantage_and_sampler_side_by_side() -> None:
    groups = [
        make_group("a", [make_rollout([5], 1.0), make_rollout([6, 7], 0.0)], prompt_ids=(1, 2))
    ]
    batch = Grpo(GrpoSpec()).build_batch(assigned(GrpoSpec(advantage="group_mean"), groups))
    assert batch.sequences[1].prompt_ids == (1, 2)
    assert batch.advantages == (0.5, -0.5)
    assert batch.sampler_logprobs == ((-1.0,), (-1.0, -1.0))


def test_nothing_to_learn_from_is_an_empty_batch() -> None:
    groups = [make_group("a", [make_rollout([5] * 3, 1.0), make_rollout([6] * 4, 1.0)])]
    batch = Grpo(GrpoSpec()).build_batch(assigned(GrpoSpec(), groups))
    assert batch.sequences == ()
    assert batch.divisor_tokens == 7


def test_token_loss_takes_both_bounds_from_the_spec() -> None:
    """Ratios 0.5 and 1.4 on either side: clipped at 1 + .28 above, at 1 - .3 below."""
    found = Grpo(GrpoSpec(clip_low=0.3, clip_high=0.28)).token_loss(
        torch.tensor([0.5, 1.4]).log(), torch.zeros(2), torch.tensor([-1.0, 1.0])
    )
    assert found.loss_N.tolist() == pytest.approx([0.7, -1.28], abs=1e-6)
