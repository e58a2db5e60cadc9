"""Policies and fixtures that the tests of tensors share.

`build_policy` is the tiny model with larger weights: as it is made, all next tokens are almost
equally likely and the prompt hardly matters, so a test on it would not notice much.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import MethodType
from typing import Any

import pytest
import torch

from training_core.models.loading import LoadedModel, make_policy
from training_core.models.packing import TokenSequence
from training_core.models.policy import Policy
from training_core.models.tiny import build_tiny_model, build_tiny_tokenizer

CPU = torch.device("cpu")
EMBEDDING_FACTOR, LINEAR_FACTOR = 1.5, 1.25


def build_policy(dtype: torch.dtype = torch.float32, **facts: Any) -> Policy:
    """A lively tiny policy; `facts` replace what was found out about the model."""
    model = build_tiny_model().to(dtype)
    if dtype == torch.float64:
        for module in model.modules():
            if type(module).__name__.endswith("RMSNorm"):
                module.forward = MethodType(exact_norm, module)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.ndim == 2:
                weight.mul_(EMBEDDING_FACTOR if "embed" in name else LINEAR_FACTOR)
    policy = make_policy("tiny", LoadedModel(model, build_tiny_tokenizer()), device=CPU)
    policy.facts = replace(policy.facts, **facts)
    return policy


def exact_norm(self: Any, hidden_RTD: torch.Tensor) -> torch.Tensor:
    """The model's norm without its float32 inside, which would hide what float64 is to show."""
    mean_RT1 = hidden_RTD.square().mean(-1, keepdim=True)
    normed: torch.Tensor = self.weight * hidden_RTD * torch.rsqrt(mean_RT1 + self.variance_epsilon)
    return normed


def make_sequences(*shape: tuple[int, int]) -> list[TokenSequence]:
    """A sequence for each (prompt length, completion length), of ids that look random."""
    generator = torch.Generator().manual_seed(3)
    return [
        TokenSequence(
            tuple(torch.randint(6, 262, (prompt,), generator=generator).tolist()),
            tuple(torch.randint(6, 262, (completion,), generator=generator).tolist()),
        )
        for prompt, completion in shape
    ]


def make_group(prompt: int, completions: list[int]) -> list[TokenSequence]:
    """Completions of those lengths, of one prompt."""
    found = make_sequences(*[(prompt, length) for length in completions])
    return [TokenSequence(found[0].prompt_ids, one.completion_ids) for one in found]


def reference_logprobs(
    policy: Policy, sequence: TokenSequence, temperature: float = 1.0
) -> torch.Tensor:
    """log softmax(logits / T)[token] by the model's own forward on one plain sequence."""
    return reference_tokens(policy, sequence, temperature)[0].float()


def reference_tokens(
    policy: Policy, sequence: TokenSequence, temperature: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probability and entropy at each completion token, float64, with gradient.

    Weights and sums are in float64: in float32 the reference's own rounding, which differs from
    processor to processor, was as large as that of what is compared with it.
    """
    ids = torch.tensor([[*sequence.prompt_ids, *sequence.completion_ids]])
    weights = {name: weight.double() for name, weight in policy.model.named_parameters()}
    made = torch.func.functional_call(policy.model, weights, (), {"input_ids": ids})
    logits = made.logits[0, len(sequence.prompt_ids) - 1 : -1]
    all_logprobs = torch.nn.functional.log_softmax(logits / temperature, dim=-1)
    chosen = all_logprobs[range(len(sequence.completion_ids)), list(sequence.completion_ids)]
    return chosen, -(all_logprobs.exp() * all_logprobs).sum(-1)


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> Iterator[None]:
    """Tiny tensors gain nothing from more, and other work on the machine loses by it."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def policy() -> Policy:
    """Shared; a test that changes weights or facts builds its own."""
    return build_policy()
