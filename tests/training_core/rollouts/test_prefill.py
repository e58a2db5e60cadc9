"""What prompts begin with in common is read once, and nobody can tell."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from transformers import MistralConfig

from tests.training_core.models.policies import build_policy, make_sequences
from tests.training_core.rollouts.test_engine import silent
from training_core.models.policy import Policy
from training_core.rollouts.engine import GenerationSettings, Request, generate
from training_core.rollouts.kv_cache import make_cache
from training_core.rollouts.prefill import common_prefix, read_prompts

PREFIX = make_sequences((21, 1))[0].prompt_ids
ENDINGS = [one.prompt_ids for one in make_sequences((3, 1), (9, 1), (1, 1), (14, 1))]
PROMPTS = [PREFIX + ending for ending in ENDINGS]


@pytest.fixture
def read(policy: Policy) -> Iterator[list[int]]:
    """How many places each forward pass of the policy computes."""
    places: list[int] = []

    def count(_: torch.nn.Module, __: object, inputs: dict[str, torch.Tensor]) -> None:
        places.append(inputs["input_ids"].numel())

    handle = policy.model.base_model.register_forward_pre_hook(count, with_kwargs=True)
    yield places
    handle.remove()


@pytest.mark.parametrize(
    ("rows", "length"),
    [
        (["abc", "abd", "ab"], 2),
        (["abc", "abc"], 3),
        (["abc", "xbc"], 0),
        (["", "abc"], 0),
        (["b", "ba", "bz", "bab"], 1),
    ],
)
def test_common_prefix(rows: list[str], length: int) -> None:
    assert common_prefix([tuple(map(ord, row)) for row in rows]) == length


def test_the_beginning_is_read_once(policy: Policy, read: list[int]) -> None:
    read_prompts(policy, PROMPTS, room_rows=1)
    assert read == [21, 4 * 14]


@torch.no_grad()
def test_next_tokens_are_those_of_each_prompt_alone(policy: Policy) -> None:
    prefill = read_prompts(policy, PROMPTS, room_rows=1)
    for prompt, logits_V, mask_T in zip(PROMPTS, prefill.logits_PV, prefill.mask_PT, strict=True):
        alone = policy.model(input_ids=torch.tensor([prompt])).logits[0, -1]
        assert torch.allclose(logits_V, alone, atol=1e-4, rtol=0)
        assert int(mask_T.sum()) == len(prompt)


def test_completions_are_those_of_each_prompt_alone() -> None:
    """The whole way: positions, masks and compaction behind a shared beginning."""
    policy = build_policy(eos_ids=tuple(range(2, 262, 17)))
    requests = [Request(prompt, (7 * place, 7 * place + 1)) for place, prompt in enumerate(PROMPTS)]
    settings = GenerationSettings(40, 1.0, 96)
    together = generate(policy, requests, settings, silent)
    for request, group in zip(requests, together, strict=True):
        (alone,) = generate(policy, [request], settings, silent)
        assert [one.token_ids for one in group] == [one.token_ids for one in alone]


def test_a_prompt_that_is_all_beginning_keeps_a_token_to_read(
    policy: Policy, read: list[int]
) -> None:
    read_prompts(policy, [PREFIX, PREFIX + ENDINGS[0]], room_rows=1)
    assert read == [20, 2 * 4]


def test_one_prompt_or_a_short_beginning_is_read_as_it_is(policy: Policy, read: list[int]) -> None:
    read_prompts(policy, PROMPTS[:1], room_rows=9)
    read_prompts(policy, [(5, *ENDINGS[0]), (5, *ENDINGS[1])], room_rows=1)
    assert read == [24, 2 * 10]


def test_a_sliding_window_counts_columns_so_nothing_is_shared(
    policy: Policy, read: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    sliding = MistralConfig(num_hidden_layers=2, sliding_window=16)
    layers = make_cache(sliding).layers
    cache = make_cache(policy.model.config)
    monkeypatch.setattr("training_core.rollouts.prefill.make_cache", lambda *_, **__: cache)
    cache.layers[0] = layers[0]
    read_prompts(policy, PROMPTS, room_rows=1)
    assert read == [4 * 35]
