"""The generation engine against the model's own `generate` and forward pass."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from tests.training_core.models.policies import build_policy, make_sequences, reference_logprobs
from training_core.failures import BadData, Interrupted
from training_core.models.packing import TokenSequence
from training_core.models.policy import Policy
from training_core.rollouts.engine import (
    Completion,
    GenerationSettings,
    Request,
    generate,
    plan_batches,
    rows_that_fit,
)

PROMPTS = [one.prompt_ids for one in make_sequences((3, 1), (17, 1), (9, 1), (30, 1), (1, 1))]
MANY_ENDS = tuple(range(2, 262, 17))
"""One token in seventeen ends: rows finish at many different times."""


@pytest.fixture(scope="module")
def short_lived() -> Policy:
    return build_policy(eos_ids=MANY_ENDS)


def silent(done: int, tokens: int) -> None:
    """Nobody listens."""


def greedy(rows: int = 96, tokens: int = 40) -> GenerationSettings:
    return GenerationSettings(tokens, 0.0, rows)


def sampling(rows: int = 96, tokens: int = 40, temperature: float = 1.0) -> GenerationSettings:
    return GenerationSettings(tokens, temperature, rows)


def requests(*seeds: int) -> list[Request]:
    """Every prompt with those seeds, made different from prompt to prompt."""
    return [
        Request(prompt, tuple(1000 * place + seed for seed in seeds))
        for place, prompt in enumerate(PROMPTS)
    ]


def token_ids(found: list[list[Completion]]) -> list[list[tuple[int, ...]]]:
    return [[completion.token_ids for completion in group] for group in found]


def reference_greedy(
    policy: Policy, prompt: tuple[int, ...], tokens: int, ends: tuple[int, ...]
) -> tuple[int, ...]:
    """What transformers' own loop makes of one prompt alone."""
    ids = policy.model.generate(
        torch.tensor([prompt]),
        attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
        max_new_tokens=tokens,
        do_sample=False,
        eos_token_id=list(ends),
        pad_token_id=policy.facts.pad_id,
    )
    return tuple(ids[0, len(prompt) :].tolist())


@pytest.mark.parametrize(
    ("ends", "rows"), [(MANY_ENDS, 1), (MANY_ENDS, 3), (MANY_ENDS, 96), ((2,), 96)]
)
def test_greedy_equals_generate(policy: Policy, ends: tuple[int, ...], rows: int) -> None:
    """Whatever the batches are: prompts alone, two or three together, all at once."""
    chosen = build_policy(eos_ids=ends)
    found = generate(chosen, requests(0, 1), greedy(rows), silent)
    for prompt, group in zip(PROMPTS, found, strict=True):
        expected = reference_greedy(policy, prompt, 40, ends)
        assert [completion.token_ids for completion in group] == [expected, expected]


def test_greedy_beyond_a_block_of_the_cache(policy: Policy) -> None:
    endless = build_policy(eos_ids=(3,))
    found = generate(endless, requests(0)[:2], greedy(tokens=140), silent)
    for prompt, (completion,) in zip(PROMPTS, found, strict=False):
        assert completion.token_ids == reference_greedy(policy, prompt, 140, (3,))
        assert len(completion.token_ids) > 128


@pytest.mark.parametrize("rows", [1, 2, 7, 96])
def test_a_completion_depends_on_its_seed_and_not_on_its_neighbours(
    short_lived: Policy, rows: int
) -> None:
    together = generate(short_lived, requests(0, 1, 2), sampling(rows), silent)
    for place, request in enumerate(requests(0, 1, 2)):
        for index, seed in enumerate(request.seeds):
            alone = generate(
                short_lived, [Request(request.prompt_ids, (seed,))], sampling(), silent
            )
            assert together[place][index].token_ids == alone[0][0].token_ids


def test_order_and_lanes_do_not_matter(short_lived: Policy) -> None:
    expected = token_ids(generate(short_lived, requests(*range(12)), sampling(), silent))
    backwards = generate(short_lived, requests(*range(12))[::-1], sampling(), silent)
    assert token_ids(backwards)[::-1] == expected
    side_by_side = build_policy(eos_ids=MANY_ENDS)
    side_by_side.use_lanes(2)
    found = generate(side_by_side, requests(*range(12)), sampling(), silent)
    assert token_ids(found) == expected


def test_other_seeds_give_other_completions(short_lived: Policy) -> None:
    first = token_ids(generate(short_lived, requests(0), sampling(), silent))
    second = token_ids(generate(short_lived, requests(1), sampling(), silent))
    assert all(one != other for one, other in zip(first, second, strict=True))


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_captured_log_probabilities_are_the_trainers(
    short_lived: Policy, temperature: float
) -> None:
    found = generate(short_lived, requests(0, 1, 2), sampling(7, temperature=temperature), silent)
    for prompt, group in zip(PROMPTS, found, strict=True):
        for completion in group:
            sequence = TokenSequence(prompt, completion.token_ids)
            with torch.no_grad():
                expected = reference_logprobs(short_lived, sequence, temperature)
            assert torch.allclose(torch.tensor(completion.logprobs), expected, atol=1e-5, rtol=0)


def test_entropy_is_that_of_each_tokens_distribution(short_lived: Policy) -> None:
    found = generate(short_lived, requests(0, 1), sampling(temperature=0.7), silent)
    for prompt, group in zip(PROMPTS, found, strict=True):
        for completion in group:
            ids = torch.tensor([[*prompt, *completion.token_ids]])
            with torch.no_grad():
                logits = short_lived.model(input_ids=ids).logits[0, len(prompt) - 1 : -1]
            entropy = torch.distributions.Categorical(logits=logits / 0.7).entropy()
            assert completion.entropy_nats == pytest.approx(float(entropy.sum()), rel=1e-4)


def test_every_end_token_ends_a_completion(short_lived: Policy) -> None:
    found = generate(short_lived, requests(*range(6)), sampling(), silent)
    completions = [completion for group in found for completion in group]
    ended = [one for one in completions if one.finish_reason == "eos"]
    assert len({one.token_ids[-1] for one in ended}) > 3
    for one in completions:
        assert not set(one.token_ids[:-1]) & set(MANY_ENDS)
        assert (one.token_ids[-1] in MANY_ENDS) == (one.finish_reason == "eos")


def test_a_limit_that_is_reached_is_told(policy: Policy) -> None:
    found = generate(policy, requests(0, 1), sampling(tokens=3), silent)
    for group in found:
        for completion in group:
            assert completion.finish_reason == "length"
            assert len(completion.token_ids) == len(completion.logprobs) == 3


def test_an_end_at_the_very_limit_is_an_end(policy: Policy) -> None:
    """What decides is the last token, not the length."""
    first = generate(policy, requests(0)[:1], greedy(tokens=5), silent)[0][0]
    ends = build_policy(eos_ids=(first.token_ids[4],))
    found = generate(ends, requests(0)[:1], greedy(tokens=5), silent)[0][0]
    assert found.token_ids == first.token_ids
    assert found.finish_reason == "eos"


def test_the_context_ends_a_completion(policy: Policy) -> None:
    """The prompt of 30 tokens has room for 4 more, the others for the whole limit."""
    small = build_policy(context_tokens=34)
    found = generate(small, requests(0, 1), sampling(tokens=10), silent)
    lengths = [[len(completion.token_ids) for completion in group] for group in found]
    assert lengths == [[10, 10], [10, 10], [10, 10], [4, 4], [10, 10]]
    assert {completion.finish_reason for completion in found[3]} == {"length"}
    whole = generate(policy, requests(0, 1), sampling(tokens=10), silent)
    assert found[3][0].token_ids == whole[3][0].token_ids[:4]


def test_a_prompt_that_leaves_no_room_is_refused() -> None:
    small = build_policy(context_tokens=30)
    with pytest.raises(BadData, match="prompt has 30 tokens; the model's context holds 30"):
        generate(small, requests(0), sampling(), silent)


def test_progress_counts_completions_and_tokens(short_lived: Policy) -> None:
    heard: list[tuple[int, int]] = []
    found = generate(
        short_lived, requests(0, 1, 2), sampling(7), lambda done, n: heard.append((done, n))
    )
    tokens = sum(len(completion.token_ids) for group in found for completion in group)
    assert heard[-1] == (15, tokens)
    assert heard == sorted(heard)
    assert len(heard) > 10


@pytest.mark.parametrize("lanes", [1, 2])
def test_a_callback_that_raises_abandons_the_work(lanes: int) -> None:
    busy = build_policy(eos_ids=(261,))
    busy.use_lanes(lanes)
    heard = 0

    def stop(done: int, tokens: int) -> None:
        nonlocal heard
        heard += 1
        if heard >= 5:
            raise Interrupted("stop")

    with pytest.raises(Interrupted):
        generate(busy, requests(*range(12)), sampling(tokens=500), stop)
    assert heard <= 4 + len(plan_batches([12] * len(PROMPTS), 96, lanes))


def test_every_completion_is_in_exactly_one_batch_and_none_is_too_large() -> None:
    for sizes, most, lanes in (([4, 4, 4], 10, 1), ([3] * 40, 64, 3), ([20, 1, 7], 8, 2)):
        batches = plan_batches(sizes, most, lanes)
        flat = [place for batch in batches for place in batch]
        assert flat == [(group, index) for group, n in enumerate(sizes) for index in range(n)]
        assert all(0 < len(batch) <= most for batch in batches)


def test_a_group_is_split_only_when_it_exceeds_a_batch() -> None:
    for batch in plan_batches([4, 4, 4], 10):
        assert len(batch) % 4 == 0
    assert [len(batch) for batch in plan_batches([20], 8)] == [8, 8, 4]


def test_memory_decides_how_many_rows_fit() -> None:
    """2 (keys, values) x 4 layers x 2 heads x 32 wide x 4 bytes x 100 tokens = 204,800 bytes."""
    text = SimpleNamespace(
        num_hidden_layers=4, num_key_value_heads=2, num_attention_heads=4, head_dim=32
    )
    config = SimpleNamespace(get_text_config=lambda **_: text)
    fit = [
        rows_that_fit(config, tokens=100, memory_bytes=memory, dtype_bytes=4)
        for memory in (1, 204_800, 409_599, 409_600)
    ]
    assert fit == [1, 1, 1, 2]
