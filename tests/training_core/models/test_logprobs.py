"""Log-probabilities against the model's own forward pass, in every layout of rows."""

from __future__ import annotations

import pytest
import torch
from transformers import GraniteConfig, GraniteForCausalLM

from tests.training_core.models.policies import (
    CPU,
    build_policy,
    make_group,
    make_sequences,
    reference_logprobs,
)
from training_core.models import logprobs as logprobs_module
from training_core.models.loading import LoadedModel, make_policy
from training_core.models.logprobs import HeadSettings, completion_logprobs
from training_core.models.packing import TokenSequence, build_batch, join_rows, plan_rows
from training_core.models.policy import Policy
from training_core.models.tiny import build_tiny_tokenizer

UNEVEN = [(5, 4), (12, 9), (3, 1), (8, 6)]


def found_logprobs(
    policy: Policy,
    sequences: list[TokenSequence],
    *,
    share: bool = False,
    temperature: float = 1.0,
    row_tokens: int = 1024,
) -> list[torch.Tensor]:
    """Per sequence, as one packed batch gives them."""
    rows = plan_rows(sequences, share=share, row_tokens=row_tokens)
    if share:
        rows = join_rows(sequences, rows, row_tokens=row_tokens)
    batch = build_batch(sequences, rows, pad_id=policy.facts.pad_id)
    found = completion_logprobs(policy, batch, HeadSettings(temperature)).logprobs_N
    lengths = [len(sequences[member].completion_ids) for member in batch.members]
    parts = dict(zip(batch.members, found.split(lengths), strict=True))
    return [parts[index] for index in range(len(sequences))]


@pytest.mark.parametrize("temperature", [1.0, 0.7, 1.6])
def test_equals_a_plain_log_softmax(policy: Policy, temperature: float) -> None:
    sequences = make_sequences(*UNEVEN)
    with torch.no_grad():
        found = found_logprobs(policy, sequences, temperature=temperature)
        for sequence, logprobs in zip(sequences, found, strict=True):
            expected = reference_logprobs(policy, sequence, temperature)
            assert torch.allclose(logprobs, expected, atol=1e-5, rtol=0)
            assert logprobs.dtype == torch.float32


@pytest.mark.parametrize("row_tokens", [1024, 40, 20])
def test_sharing_a_prompt_changes_nothing(policy: Policy, row_tokens: int) -> None:
    """Groups with and without a common beginning, in rows of any length, some sampled twice."""
    groups = make_group(7, [5, 1, 9, 3]) + make_group(4, [6, 2]) + make_group(11, [1])
    beginning = make_sequences((13, 1))[0].prompt_ids
    alike = [TokenSequence(beginning + one.prompt_ids, one.completion_ids) for one in groups]
    sequences = groups + alike + groups[:3] + alike[2:4]
    with torch.no_grad():
        shared = found_logprobs(policy, sequences, share=True, row_tokens=row_tokens)
        alone = found_logprobs(policy, sequences)
    for one, other in zip(shared, alone, strict=True):
        assert torch.allclose(one, other, atol=1e-5, rtol=0)


def test_sharing_a_prompt_leaves_the_gradient() -> None:
    policy = build_policy()
    sequences = make_group(7, [5, 1, 9, 3])
    sequences += sequences[1:3] + [
        TokenSequence((*one.prompt_ids, 8, 9), one.completion_ids) for one in sequences
    ]
    gradients = []
    for share in (True, False):
        total = torch.stack(
            [
                (index + 1.0) * part.sum()
                for index, part in enumerate(found_logprobs(policy, sequences, share=share))
            ]
        ).sum()
        gradients.append(torch.autograd.grad(total, policy.parameters()))
    for one, other in zip(*gradients, strict=True):
        assert torch.allclose(one, other, atol=1e-4 * float(other.abs().max()), rtol=0)


def test_padding_changes_nothing(policy: Policy) -> None:
    """Next to rows that are 0, 3 and 70 tokens longer."""
    one = make_sequences((6, 5))[0]
    with torch.no_grad():
        alone = found_logprobs(policy, [one])[0]
        for longer in (0, 3, 70):
            neighbour = make_sequences((6 + longer, 5))[0]
            padded = found_logprobs(policy, [one, neighbour])[0]
            assert torch.allclose(padded, alone, atol=1e-5, rtol=0)


def test_the_pad_token_itself_is_no_padding(policy: Policy) -> None:
    """A completion may hold the pad id: what counts is the place, not the id."""
    pad = policy.facts.pad_id
    sequence = TokenSequence((9, 8, 7), (20, pad, 30, pad))
    with torch.no_grad():
        found = found_logprobs(policy, [sequence, *make_sequences((9, 9))])[0]
        assert torch.allclose(found, reference_logprobs(policy, sequence), atol=1e-5, rtol=0)


def test_chunks_equal_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = build_policy()
    sequences = make_sequences(*UNEVEN) + make_group(6, [4, 1, 4])
    sequences += sequences[-2:]
    found = []
    for limit in (1 << 29, 0):
        monkeypatch.setattr(logprobs_module, "KEPT_LOGIT_BYTES", limit)
        monkeypatch.setattr(logprobs_module, "CHUNK_TOKENS", 3)
        logprobs = torch.cat(found_logprobs(policy, sequences, share=True, temperature=0.7))
        weights = torch.arange(1.0, len(logprobs) + 1)
        gradient = torch.autograd.grad((logprobs * weights).sum(), policy.parameters())
        found.append((logprobs, gradient))
    (whole, whole_gradient), (chunked, chunked_gradient) = found
    assert torch.allclose(chunked, whole, atol=1e-5, rtol=0)
    for one, other in zip(chunked_gradient, whole_gradient, strict=True):
        assert torch.allclose(one, other, atol=1e-4 * float(other.abs().max()), rtol=0)


def test_hits_are_the_likeliest_tokens(policy: Policy) -> None:
    prompt = make_sequences((6, 1))[0].prompt_ids
    with torch.no_grad():
        best = int(policy.model(input_ids=torch.tensor([prompt])).logits[0, -1].argmax())
    sequences = [TokenSequence(prompt, (best,)), TokenSequence(prompt, (best - 1,))]
    batch = build_batch(sequences, plan_rows(sequences, share=True), pad_id=0)
    hits = dict(zip(batch.members, completion_logprobs(policy, batch).hit_N.tolist(), strict=True))
    assert hits == {0: True, 1: False}


def test_a_model_that_scales_its_logits_keeps_its_own_head() -> None:
    """Hidden states times the output matrix would be eight times too sharp here."""
    config = GraniteConfig(
        vocab_size=262, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=2, logits_scaling=8.0, initializer_range=0.3,
        pad_token_id=0, bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    torch.manual_seed(0)
    loaded = LoadedModel(GraniteForCausalLM(config), build_tiny_tokenizer())
    policy = make_policy("scaled", loaded, device=CPU)
    assert not policy.facts.plain_head
    sequences = make_group(5, [4, 2]) + make_sequences((3, 3))
    with torch.no_grad():
        found = found_logprobs(policy, sequences, share=policy.facts.shared_prompts)
        for sequence, logprobs in zip(sequences, found, strict=True):
            expected = reference_logprobs(policy, sequence)
            assert torch.allclose(logprobs, expected, atol=1e-5, rtol=0)
