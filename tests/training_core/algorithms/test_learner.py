"""The gradient of a window, however it is cut; memory that runs out; updates left out."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import pytest
import torch
from accelerate import Accelerator

from tests.training_core.models.policies import (
    build_policy,
    make_group,
    make_sequences,
    reference_logprobs,
)
from training_core.algorithms.learner import SMALLEST_MICRO_BATCH_TOKENS, Learner, TokenLoss
from training_core.contract.stages import OptimiserSpec
from training_core.failures import Interrupted, OutOfMemory
from training_core.models.logprobs import HeadSettings, TokenLogprobs
from training_core.models.optimiser import build_optimiser
from training_core.models.packing import PackedBatch, TokenSequence
from training_core.models.policy import Policy

UNEVEN = [(5, 2), (9, 8), (3, 1), (12, 11), (4, 6), (7, 3)]
TOKENS = sum(length for _, length in UNEVEN)
WHOLE = 1_000_000


@dataclass
class Listener:
    """Remembers what an update tells, and may end it."""

    end_at: int | None = None
    heard: list[tuple[int, int]] = field(default_factory=list)

    def __call__(self, done: int, total: int, *, may_abandon: bool) -> None:
        self.heard.append((done, total))
        if may_abandon and done == self.end_at:
            raise Interrupted("pause")


def make_learner(policy: Policy, budget: int, listener: Listener | None = None) -> Learner:
    return Learner(policy, Accelerator(cpu=True), budget, listener or Listener())


def weighted_loss(batch: PackedBatch, found: TokenLogprobs) -> tuple[torch.Tensor, int]:
    """-(member + 1) log pi / tokens: every sequence has a weight of its own, so none can stand
    in."""
    return -found.logprobs_N * weights_of(batch) / TOKENS, len(found.logprobs_N)


def weights_of(batch: PackedBatch) -> torch.Tensor:
    lengths = torch.tensor([length for _, length in UNEVEN])
    members = torch.tensor(batch.members)
    return (members + 1.0).repeat_interleave(lengths[members])


def gradients(policy: Policy) -> list[torch.Tensor]:
    found = [weight.grad for weight in policy.parameters() if weight.grad is not None]
    assert len(found) == len(policy.parameters())
    return found


def assert_close(found: list[torch.Tensor], expected: list[torch.Tensor]) -> None:
    """Equal up to float32 rounding: the difference's norm against the gradient's norm."""
    difference = [one.double() - other.double() for one, other in zip(found, expected, strict=True)]
    assert norm_of(difference) <= 3e-6 * norm_of(expected)


def norm_of(gradient: list[torch.Tensor]) -> float:
    return math.sqrt(sum(float(part.double().square().sum()) for part in gradient))


def window_gradient(budget: int, *, lanes: int = 1) -> tuple[list[torch.Tensor], int]:
    """Gradient of the uneven window, and in how many micro-batches it was computed."""
    policy, listener = build_policy(), Listener()
    policy.use_lanes(lanes)
    sequences = make_sequences(*UNEVEN)
    tallies = make_learner(policy, budget, listener).accumulate(sequences, weighted_loss)
    assert sum(tallies) == TOKENS
    return gradients(policy), len(listener.heard)


def reference_gradient() -> list[torch.Tensor]:
    """One plain sequence after the other, by the model's own forward: no packing, no batches."""
    policy = build_policy()
    sequences = make_sequences(*UNEVEN)
    total = torch.stack(
        [-(n + 1.0) * reference_logprobs(policy, one).sum() for n, one in enumerate(sequences)]
    ).sum()
    (total / TOKENS).backward()
    return gradients(policy)


@pytest.mark.parametrize(("budget", "micro_batches"), [(WHOLE, 1), (64, 2), (24, 4)])
def test_micro_batches_leave_the_gradient_unchanged(budget: int, micro_batches: int) -> None:
    found, count = window_gradient(budget)
    assert count == micro_batches
    assert_close(found, reference_gradient())


@pytest.mark.parametrize("lanes", [2, 3])
def test_lanes_leave_the_gradient_unchanged(lanes: int) -> None:
    found, count = window_gradient(WHOLE, lanes=lanes)
    assert count == lanes
    assert_close(found, reference_gradient())
    again, _ = window_gradient(WHOLE, lanes=lanes)
    assert all(torch.equal(one, other) for one, other in zip(found, again, strict=True))


def test_log_probabilities_come_in_the_order_of_the_sequences() -> None:
    policy = build_policy()
    sequences = [*make_group(6, [4, 1, 7]), *make_sequences((3, 5), (9, 2))]
    for budget in (WHOLE, 20):
        found = make_learner(policy, budget).logprobs(sequences, HeadSettings(0.7))
        with torch.no_grad():
            for sequence, logprobs in zip(sequences, found, strict=True):
                expected = reference_logprobs(policy, sequence, 0.7)
                assert torch.allclose(logprobs, expected, atol=1e-5, rtol=0)
                assert not logprobs.requires_grad


def fails_above(tokens: int) -> TokenLoss[int]:
    """A loss whose micro-batches need too much memory beyond that many completion tokens."""

    def loss(batch: PackedBatch, found: TokenLogprobs) -> tuple[torch.Tensor, int]:
        if len(found.logprobs_N) > tokens:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return weighted_loss(batch, found)

    return loss


def test_running_out_of_memory_halves_the_micro_batches() -> None:
    """Nothing of the failed try is left in the gradient."""
    policy = build_policy()
    learner = make_learner(policy, 120)
    learner.accumulate(make_sequences(*UNEVEN), fails_above(12))
    assert learner.halvings == [60, 30]
    assert learner.micro_batch_tokens == 30
    assert_close(gradients(policy), reference_gradient())


def test_a_sequence_that_never_fits_is_a_clear_failure() -> None:
    policy = build_policy()
    learner = make_learner(policy, 100)
    with pytest.raises(OutOfMemory, match="single sequence of up to 23 tokens") as caught:
        learner.accumulate(make_sequences(*UNEVEN), fails_above(0))
    assert learner.micro_batch_tokens >= SMALLEST_MICRO_BATCH_TOKENS
    assert "max_new_tokens" in caught.value.advice
    assert all(weight.grad is None for weight in policy.parameters())


def test_another_error_is_not_taken_for_memory() -> None:
    def loss(batch: PackedBatch, found: TokenLogprobs) -> tuple[torch.Tensor, int]:
        raise RuntimeError("shapes do not match")

    learner = make_learner(build_policy(), 100)
    with pytest.raises(RuntimeError, match="shapes do not match"):
        learner.accumulate(make_sequences(*UNEVEN), loss)
    assert learner.micro_batch_tokens == 100


def test_an_update_can_be_abandoned_only_where_nothing_has_changed() -> None:
    policy, listener = build_policy(), Listener(end_at=2)
    learner = make_learner(policy, 24, listener)
    with pytest.raises(Interrupted):
        learner.accumulate(make_sequences(*UNEVEN), weighted_loss)
    assert listener.heard == [(0, 4), (1, 4), (2, 4)]
    policy.clear_gradients()
    learner.accumulate(make_sequences(*UNEVEN), weighted_loss, may_abandon=False)
    assert len(listener.heard) == 7


def one_update(policy: Policy, gradient: float, max_grad_norm: float = 1e9) -> float | None:
    """Apply the same gradient to every weight by plain steps of AdamW."""
    for weight in policy.parameters():
        weight.grad = torch.full_like(weight, gradient)
    optimiser = build_optimiser(OptimiserSpec(learning_rate=0.1), policy.parameters())
    norm = make_learner(policy, WHOLE).apply(optimiser, max_grad_norm=max_grad_norm)
    assert all(weight.grad is None for weight in policy.parameters())
    return norm


@pytest.mark.parametrize("gradient", [math.nan, math.inf, -math.inf])
def test_a_gradient_that_is_not_finite_changes_nothing(gradient: float) -> None:
    policy, untouched = build_policy(), build_policy()
    assert one_update(policy, gradient) is None
    pairs = zip(policy.parameters(), untouched.parameters(), strict=True)
    assert all(torch.equal(weight, other) for weight, other in pairs)


def test_a_finite_gradient_is_followed_downhill() -> None:
    policy, untouched = build_policy(), build_policy()
    norm = one_update(policy, 1.0)
    assert norm == pytest.approx(policy.facts.parameters**0.5, rel=1e-4)
    for weight, other in zip(policy.parameters(), untouched.parameters(), strict=True):
        assert torch.allclose(weight, other - 0.1, atol=1e-4)


def test_the_norm_is_told_before_clipping() -> None:
    assert one_update(build_policy(), 1.0, max_grad_norm=0.5) == pytest.approx(
        build_policy().facts.parameters ** 0.5, rel=1e-4
    )


def test_a_sampler_of_its_own_follows_each_update() -> None:
    policy = build_policy()
    policy.use_sampler_dtype(torch.bfloat16)
    one_update(policy, 1.0)
    pairs = zip(policy.sampler.parameters(), policy.parameters(), strict=True)
    assert all(torch.equal(copy, weight.bfloat16()) for copy, weight in pairs)


def test_sequences_of_one_token_have_a_gradient() -> None:
    policy = build_policy()
    sequences = [TokenSequence((5,), (9,)), TokenSequence((5,), (10,))]
    make_learner(policy, WHOLE).accumulate(sequences, lambda _, found: (-found.logprobs_N, 0))
    assert any(bool(gradient.any()) for gradient in gradients(policy))
