"""The policy's copies: a sampler of another type, replicas of lanes."""

from __future__ import annotations

import torch

from tests.training_core.models.policies import build_policy
from training_core.models.lanes import share_out

IDS = torch.tensor([[1, 4, 70, 80, 5]])


def test_a_sampler_in_bfloat16_follows_the_weights_that_learn() -> None:
    policy = build_policy()
    policy.use_sampler_dtype(torch.bfloat16)
    assert {weight.dtype for weight in policy.sampler.parameters()} == {torch.bfloat16}
    assert {weight.dtype for weight in policy.model.parameters()} == {torch.float32}
    buffers = dict(policy.model.named_buffers())
    assert buffers
    for name, buffer in policy.sampler.named_buffers():
        assert torch.equal(buffer, buffers[name])
    with torch.no_grad():
        for weight in policy.parameters():
            weight.add_(0.5)
    policy.refresh_sampler()
    pairs = zip(policy.sampler.parameters(), policy.model.parameters(), strict=True)
    assert all(torch.equal(copy, weight.bfloat16()) for copy, weight in pairs)
    assert not any(weight.requires_grad for weight in policy.sampler.parameters())


def test_a_sampler_of_the_same_type_is_the_model_itself() -> None:
    policy = build_policy()
    policy.use_sampler_dtype(torch.float32)
    assert policy.sampler is policy.model


def test_dropout_is_off() -> None:
    assert not any(module.training for module in build_policy().model.modules())


def test_replicas_share_weights_and_add_up_gradients() -> None:
    policy = build_policy()
    policy.use_lanes(3)
    assert len(policy.replicas) == 3
    for replica in policy.replicas[1:]:
        assert replica.model is not policy.model
        pairs = zip(replica.parameters(), policy.parameters(), strict=True)
        assert all(own.data_ptr() == shared.data_ptr() for own, shared in pairs)
    for factor, replica in enumerate(policy.replicas, start=1):
        (factor * replica.model(IDS).logits.square().sum()).backward()
    policy.gather_gradients()
    alone = build_policy()
    (6 * alone.model(IDS).logits.square().sum()).backward()
    for found, expected in zip(policy.parameters(), alone.parameters(), strict=True):
        assert found.grad is not None
        assert expected.grad is not None
        scale = float(expected.grad.abs().max())
        assert torch.allclose(found.grad, expected.grad, atol=1e-4 * scale, rtol=0)
    assert all(twin.grad is None for r in policy.replicas[1:] for twin in r.parameters())


def test_gradients_of_all_replicas_are_cleared() -> None:
    policy = build_policy()
    policy.use_lanes(2)
    for replica in policy.replicas:
        replica.model(IDS).logits.sum().backward()
    policy.clear_gradients()
    assert all(weight.grad is None for r in policy.replicas for weight in r.parameters())


def test_lanes_get_like_loads() -> None:
    assert share_out([10, 1, 1, 1, 7], 2) == [[0], [1, 2, 3, 4]]
    assert share_out([5], 4) == [[0]]
    assert share_out([], 2) == []
