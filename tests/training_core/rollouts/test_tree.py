"""Completions share a row for as long as they are equal, and nobody can tell."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest
import torch

from tests.training_core.models.policies import build_policy, make_sequences
from tests.training_core.rollouts.test_engine import silent
from training_core.models.policy import Policy
from training_core.rollouts.engine import GenerationSettings, Request, generate
from training_core.rollouts.kv_cache import GrowingLayer
from training_core.rollouts.tree import RowPlan, plan_rows

PROMPTS = [one.prompt_ids for one in make_sequences((3, 1), (17, 1), (9, 1))]


def planned(pairs: list[tuple[int, int]], rows: int) -> RowPlan:
    """Completions as (row so far, chosen token)."""
    rows_A, tokens_A = torch.tensor(pairs).unbind(dim=1)
    return plan_rows(rows_A, tokens_A, rows=rows)


def test_equal_tokens_keep_the_row() -> None:
    plan = planned([(0, 7), (0, 7), (1, 9), (1, 9)], rows=2)
    assert plan.rows_A.tolist() == [0, 0, 1, 1]
    assert plan.tokens_B.tolist() == [7, 9]
    assert not plan.moves


def test_where_tokens_differ_the_row_forks() -> None:
    plan = planned([(0, 7), (0, 8), (1, 9), (0, 7)], rows=2)
    assert plan.rows_A.tolist() == [0, 2, 1, 0]
    assert plan.tokens_B.tolist() == [7, 9, 8]
    assert plan.parents_B.tolist() == [0, 1, 0]
    assert plan.moves


def test_children_take_dead_rows_first() -> None:
    plan = planned([(3, 5), (3, 6), (0, 1), (4, 2), (5, 2), (6, 2), (2, 2)], rows=7)
    assert plan.parents_B.tolist() == [0, 3, 2, 3, 4, 5, 6]
    assert plan.tokens_B.tolist() == [1, 6, 2, 5, 2, 2, 2]
    assert plan.rows_A.tolist() == [3, 1, 0, 4, 5, 6, 2]


def test_dead_rows_stay_while_they_are_few_and_leave_together() -> None:
    few = planned([(row, 1) for row in range(10) if row != 4], rows=10)
    assert not few.moves
    assert len(few.tokens_B) == 10
    many = planned([(row, 1) for row in (1, 5, 9)], rows=10)
    assert many.moves
    assert many.parents_B.tolist() == [1, 5, 9]
    assert many.rows_A.tolist() == [0, 1, 2]


def test_any_plan_keeps_every_history() -> None:
    """What a completion's row has read is what the completion has chosen, whatever happens."""
    random = Random(0)
    chosen = dict.fromkeys(range(24), "")
    rows_A = torch.tensor([n // 8 for n in range(24)])
    read = ["", "", ""]
    for _ in range(12):
        tokens_A = torch.tensor([random.choice((0, 0, 0, 1, 2)) for _ in chosen])
        plan = plan_rows(rows_A, tokens_A, rows=len(read))
        read = [
            read[parent] + str(token)
            for parent, token in zip(plan.parents_B.tolist(), plan.tokens_B.tolist(), strict=True)
        ]
        for n, token in zip(chosen, tokens_A.tolist(), strict=True):
            chosen[n] += str(token)
        assert [read[row] for row in plan.rows_A] == list(chosen.values())
        gone = random.sample(range(len(chosen)), len(chosen) // 8)
        rows_A = torch.tensor([r for a, r in enumerate(plan.rows_A.tolist()) if a not in gone])
        chosen = {n: text for a, (n, text) in enumerate(chosen.items()) if a not in gone}


@pytest.fixture
def rows_read(policy: Policy) -> Iterator[list[int]]:
    """Rows of each forward pass."""
    rows: list[int] = []

    def count(_: torch.nn.Module, __: object, inputs: dict[str, torch.Tensor]) -> None:
        rows.append(len(inputs["input_ids"]))

    handle = policy.model.base_model.register_forward_pre_hook(count, with_kwargs=True)
    yield rows
    handle.remove()


def test_equal_completions_are_decoded_once(policy: Policy, rows_read: list[int]) -> None:
    requests = [Request(prompt, tuple(range(8))) for prompt in PROMPTS]
    found = generate(policy, requests, GenerationSettings(6, 0.0, 96), silent)
    assert set(rows_read) == {len(PROMPTS)}
    for group in found:
        assert len({completion.token_ids for completion in group}) == 1


@pytest.mark.parametrize("temperature", [0.02, 0.06])
def test_groups_that_fork_late_are_those_of_each_seed_alone(temperature: float) -> None:
    """A policy that is rather sure: completions part one by one, and some never do."""
    policy = build_policy(eos_ids=tuple(range(2, 262, 17)))
    requests = [
        Request(prompt, tuple(range(100 * place, 100 * place + 12)))
        for place, prompt in enumerate(PROMPTS)
    ]
    settings = GenerationSettings(30, temperature, 96)
    together = generate(policy, requests, settings, silent)
    distinct = {completion.token_ids for group in together for completion in group}
    assert 3 < len(distinct) < 36
    for request, group in zip(requests, together, strict=True):
        for seed, completion in zip(request.seeds, group, strict=True):
            ((alone,),) = generate(policy, [Request(request.prompt_ids, (seed,))], settings, silent)
            assert completion.token_ids == alone.token_ids
            tolerance = 1e-5 / temperature  # which is what divides the logits
            assert completion.logprobs == pytest.approx(alone.logprobs, abs=tolerance)


def test_a_layer_moves_rows_and_grows_in_both_directions() -> None:
    layer = GrowingLayer(2)
    states = torch.arange(2 * 3 * 70 * 4, dtype=torch.float32).view(2, 3, 70, 4)
    layer.update(states[:, :, :5], -states[:, :, :5])
    layer.batch_select_indices(torch.tensor([1, 0, 0, 1, 1]))
    expected = states[[1, 0, 0, 1, 1]]
    keys, values = layer.update(expected[:, :, 5:], -expected[:, :, 5:])
    assert torch.equal(keys, expected)
    assert torch.equal(values, -expected)
    layer.batch_select_indices(torch.tensor([1, 4]))
    assert torch.equal(layer.keys, states)
    assert layer.get_seq_length() == 70
