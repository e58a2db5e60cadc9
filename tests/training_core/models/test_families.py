"""What is special about a family of models is done right by our own engine and learner.

Judged by transformers' own `generate` and forward pass, on one plain sequence at a time.
"""

from __future__ import annotations

import pytest
import torch
from accelerate import Accelerator
from torch.nn import functional

from tests.training_core.models.families import (
    ENDS,
    FAMILIES,
    WINDOW_TOKENS,
    build_family_policy,
)
from tests.training_core.models.policies import (
    make_group,
    make_sequences,
    reference_logprobs,
)
from training_core.algorithms.learner import Learner
from training_core.models.logprobs import HeadSettings, TokenLogprobs
from training_core.models.packing import PackedBatch, TokenSequence
from training_core.models.policy import Policy
from training_core.rollouts.engine import GenerationSettings, Request, generate

SLIDING = {"qwen2", "gemma2", "gemma3"}
PREFIX = make_sequences((21, 1))[0].prompt_ids
PROMPTS = [
    *(one.prompt_ids for one in make_sequences((3, 1), (17, 1), (30, 1), (1, 1))),
    *(PREFIX + one.prompt_ids for one in make_sequences((9, 1), (2, 1))),
]
"""Shorter than a window and longer, with a common beginning and without."""
TOKENS = 40
CPU = torch.device("cpu")


@pytest.fixture(scope="module", params=FAMILIES)
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def policy(family: str) -> Policy:
    return build_family_policy(family)


def silent(done: int, tokens: int) -> None:
    """Nobody listens."""


def no_progress(done: int, total: int, *, may_abandon: bool) -> None:
    """Nobody listens."""


def test_what_is_found_out_about_it(family: str, policy: Policy) -> None:
    facts = policy.facts
    assert facts.eos_ids == ENDS
    assert facts.plain_head == (family != "gemma2")
    assert facts.window_tokens == (WINDOW_TOKENS if family in SLIDING else None)
    assert facts.context_tokens == 512
    tied = family != "llama"
    head, embedding = policy.head.weight, policy.model.get_input_embeddings().weight
    assert (head is embedding) == tied
    assert facts.shares_rows_of(WINDOW_TOKENS) == facts.shared_prompts
    assert not (family in SLIDING and facts.shares_rows_of(WINDOW_TOKENS + 1))


def test_greedy_equals_generate(policy: Policy) -> None:
    """All prompts in one batch, two completions each, far beyond the window."""
    requests = [Request(prompt, (0, 1)) for prompt in PROMPTS]
    found = generate(policy, requests, GenerationSettings(TOKENS, 0.0, 96), silent)
    for prompt, group in zip(PROMPTS, found, strict=True):
        ids = policy.model.generate(
            torch.tensor([prompt]),
            attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
            max_new_tokens=TOKENS,
            do_sample=False,
            eos_token_id=list(ENDS),
            pad_token_id=policy.facts.pad_id,
        )
        expected = tuple(ids[0, len(prompt) :].tolist())
        assert [one.token_ids for one in group] == [expected, expected]


def test_sampled_log_probabilities_are_the_models_own(policy: Policy) -> None:
    """Rows fork, end at different times and are moved together; each end token ends one."""
    requests = [
        Request(prompt, tuple(range(10 * place, 10 * place + 6)))
        for place, prompt in enumerate(PROMPTS)
    ]
    found = generate(policy, requests, GenerationSettings(TOKENS, 0.9, 96), silent)
    lengths = set()
    for prompt, group in zip(PROMPTS, found, strict=True):
        for completion in group:
            lengths.add(len(completion.token_ids))
            assert not set(completion.token_ids[:-1]) & set(ENDS)
            with torch.no_grad():
                expected = reference_logprobs(
                    policy, TokenSequence(prompt, completion.token_ids), 0.9
                )
            assert torch.allclose(torch.tensor(completion.logprobs), expected, atol=2e-5, rtol=0)
    assert len(lengths) > 2


@pytest.mark.parametrize("lengths", [[4, 2, 7], [4, 25, 9]], ids=["in sight", "beyond a window"])
def test_the_learner_computes_what_the_model_does(policy: Policy, lengths: list[int]) -> None:
    """Values and gradients, whether rows are shared or not."""
    sequences = make_group(5, lengths) + make_sequences((4, 6), (2, 3))
    learner = Learner(policy, Accelerator(cpu=True), 4096, no_progress)
    found = learner.logprobs(sequences, HeadSettings(0.7))
    for sequence, logprobs in zip(sequences, found, strict=True):
        with torch.no_grad():
            expected = reference_logprobs(policy, sequence, 0.7)
        assert torch.allclose(logprobs, expected, atol=2e-5, rtol=0)
    policy.clear_gradients()
    learner.accumulate(sequences, minus_logprob)
    own = [weight.grad.clone() for weight in policy.parameters() if weight.grad is not None]
    assert len(own) == len(policy.parameters())
    policy.clear_gradients()
    for sequence in sequences:
        (-reference_logprobs(policy, sequence).sum()).backward()
    scale = max(float(weight.grad.abs().max()) for weight in policy.parameters())
    for gradient, weight in zip(own, policy.parameters(), strict=True):
        assert torch.allclose(gradient, weight.grad, atol=1e-5 * scale, rtol=0)
    policy.clear_gradients()


def minus_logprob(_: PackedBatch, found: TokenLogprobs) -> tuple[torch.Tensor, None]:
    return -found.logprobs_N, None


def test_a_window_that_were_not_heeded_would_be_seen() -> None:
    """The judge is able to say no: rows shared beyond the window give other numbers."""
    policy = build_family_policy("gemma3")
    assert policy.facts.shared_prompts
    sequences = make_group(5, [25, 25])
    learner = Learner(policy, Accelerator(cpu=True), 4096, no_progress)
    right = learner.logprobs(sequences)
    object.__setattr__(policy.facts, "window_tokens", None)
    wrong = learner.logprobs(sequences)
    assert not torch.allclose(torch.cat(right), torch.cat(wrong), atol=1e-3)


def test_a_low_cap_is_felt() -> None:
    policy = build_family_policy("gemma2")
    ids = torch.tensor([PROMPTS[2]])
    with torch.no_grad():
        logits = policy.model(input_ids=ids).logits
        hidden = policy.model.base_model(input_ids=ids).last_hidden_state
        bare = functional.linear(hidden, policy.head.weight)
    assert float(logits.abs().max()) < 3.0
    assert float((bare - logits).abs().max()) > 0.1
