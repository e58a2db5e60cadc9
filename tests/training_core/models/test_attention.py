"""Attention of short rows against the fused kernel, forward and backward."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from transformers import AutoModelForCausalLM
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from tests.training_core.models.policies import build_policy, make_group, reference_logprobs
from training_core.models import attention
from training_core.models.attention import short_row_attention, use_short_row_attention
from training_core.models.logprobs import completion_logprobs
from training_core.models.packing import build_batch, plan_rows

MODULE = SimpleNamespace(num_key_value_groups=3, is_causal=True)


def make_inputs(tokens: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(5)
    shapes = [(2, 6, tokens, 16), (2, 2, tokens, 16), (2, 2, tokens, 16)]
    return [torch.randn(shape, generator=generator, requires_grad=True) for shape in shapes]


def causal(tokens: int) -> torch.Tensor:
    return torch.ones(tokens, tokens, dtype=torch.bool).tril()[None, None]


@pytest.mark.parametrize("masked", [False, True])
def test_equals_the_fused_kernel_with_its_gradient(masked: bool) -> None:
    mask = causal(9).expand(2, 1, 9, 9).clone()
    mask[1, 0, 4:, 1:3] = False
    found, expected = [], []
    for attend, results in ((short_row_attention, found), (sdpa_attention_forward, expected)):
        inputs = make_inputs(9)
        mixed, _ = attend(MODULE, *inputs, mask if masked else None, scaling=0.2)
        (mixed * torch.arange(mixed.numel()).view(mixed.shape) / 100).sum().backward()
        results += [mixed, *(tensor.grad for tensor in inputs)]
    for one, other in zip(found, expected, strict=True):
        assert torch.allclose(one, other, atol=1e-4, rtol=1e-4)


def test_a_row_of_padding_stays_finite() -> None:
    mask = causal(5).clone()
    mask[..., :3] = False
    mixed, _ = short_row_attention(MODULE, *make_inputs(5), mask, scaling=0.2)
    assert torch.isfinite(mixed).all()


@pytest.mark.parametrize(("tokens", "queries"), [(300, 300), (9, 1)])
def test_long_rows_and_single_tokens_go_to_the_fused_kernel(
    monkeypatch: pytest.MonkeyPatch, tokens: int, queries: int
) -> None:
    asked = []
    monkeypatch.setattr(
        attention, "sdpa_attention_forward", lambda *args: asked.append(args) or (None, None)
    )
    query, key, value = make_inputs(tokens)
    short_row_attention(MODULE, query[:, :, :queries], key, value, None)
    assert asked


def test_a_policy_has_the_same_logprobs_and_saves_as_before(tmp_path) -> None:
    policy = build_policy()
    use_short_row_attention(policy.model)
    sequences = make_group(7, [5, 1, 9])
    batch = build_batch(sequences, plan_rows(sequences, share=True), pad_id=0)
    with torch.no_grad():
        found = completion_logprobs(policy, batch).logprobs_N
        policy.model.save_pretrained(tmp_path)
        plain = AutoModelForCausalLM.from_pretrained(tmp_path)
        assert plain.config._attn_implementation == "sdpa"
        policy.model = plain
        expected = torch.cat([reference_logprobs(policy, sequence) for sequence in sequences])
    assert torch.allclose(found, expected, atol=1e-4, rtol=0)
