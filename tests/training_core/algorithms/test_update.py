"""An rl update as a whole: which way it pushes, what it compares with, what it counts."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
import torch
from accelerate import Accelerator

from tests.training_core.models.policies import (
    build_policy,
    make_group,
    make_sequences,
    reference_logprobs,
)
from training_core.algorithms.grpo import Grpo
from training_core.algorithms.learner import Learner
from training_core.algorithms.update import UpdateResult, UpdateSettings, update_policy
from training_core.contract.metrics import find_metric
from training_core.contract.stages import GrpoSpec, OptimiserSpec
from training_core.losses.policy_gradient import Surrogate
from training_core.models.optimiser import build_optimiser
from training_core.models.packing import TokenSequence
from training_core.models.policy import Policy
from training_core.types import PolicyBatch

SEQUENCES = [*make_group(6, [4, 2, 7]), *make_sequences((9, 5), (3, 1))]
ADVANTAGES = (1.5, -0.5, -1.0, 0.8, -0.8)
WHOLE = 1_000_000


class Watched(Grpo):
    """GRPO that remembers the log-probabilities it was asked about."""

    def __init__(self, spec: GrpoSpec) -> None:
        super().__init__(spec)
        self.calls: list[tuple[torch.Tensor, torch.Tensor]] = []

    def token_loss(
        self, logprobs_N: torch.Tensor, old_logprobs_N: torch.Tensor, advantages_N: torch.Tensor
    ) -> Surrogate:
        self.calls.append((logprobs_N.detach().clone(), old_logprobs_N.clone()))
        return super().token_loss(logprobs_N, old_logprobs_N, advantages_N)


def sampled(policy: Policy, sequences: Sequence[TokenSequence], shift: float = 0.0) -> PolicyBatch:
    """A batch whose sampler's log-probabilities are the policy's at 0.7, plus a shift."""
    with torch.no_grad():
        rows = [reference_logprobs(policy, one, 0.7) + shift for one in sequences]
    return PolicyBatch(
        tuple(sequences),
        ADVANTAGES[: len(sequences)],
        tuple(tuple(row.tolist()) for row in rows),
        divisor_tokens=40,
    )


@torch.no_grad()
def log_probability(policy: Policy, sequence: TokenSequence) -> float:
    return float(reference_logprobs(policy, sequence).sum())


def update(
    policy: Policy,
    batch: PolicyBatch,
    *,
    algorithm: Grpo | None = None,
    epochs: int = 1,
    budget: int = WHOLE,
    rate: float = 1e-3,
) -> UpdateResult:
    learner = Learner(policy, Accelerator(cpu=True), budget, lambda *_, **__: None)
    optimiser = build_optimiser(OptimiserSpec(learning_rate=rate), policy.parameters())
    settings = UpdateSettings(temperature=0.7, max_grad_norm=1.0, inner_epochs=epochs)
    return update_policy(learner, optimiser, algorithm or Grpo(GrpoSpec()), batch, settings)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_good_completion_becomes_likelier_and_a_bad_one_less(sign: int) -> None:
    policy = build_policy()
    one = SEQUENCES[3]
    before = log_probability(policy, one)
    update(policy, PolicyBatch((one,), (float(sign),), ((-5.0,) * 5,), 5))
    assert (log_probability(policy, one) - before) * sign > 0.01


def test_one_epoch_has_ratio_one_and_no_clipping() -> None:
    policy = build_policy()
    algorithm = Watched(GrpoSpec())
    found = update(policy, sampled(policy, SEQUENCES), algorithm=algorithm)
    assert all(torch.equal(new, old) for new, old in algorithm.calls)
    assert found.metrics["clip_ratio/region_mean"] == 0.0
    assert found.metrics["sampling/logprob_difference/max"] < 1e-5
    # With ratio 1 the loss is -sum(A * tokens) / divisor.
    pairs = zip(SEQUENCES, ADVANTAGES, strict=True)
    total = sum(len(one.completion_ids) * advantage for one, advantage in pairs)
    assert found.metrics["loss"] == pytest.approx(-total / 40, abs=1e-6)
    assert found.metrics["advantage/tokens_with_gradient"] == 19 / 40
    assert found.metrics["advantage/abs_max"] == 1.5
    assert found.skipped == 0


def test_the_loss_of_two_epochs_is_their_mean() -> None:
    """Without a step between them both have the same."""
    one, two = build_policy(), build_policy()
    once = update(one, sampled(one, SEQUENCES), rate=0.0)
    twice = update(two, sampled(two, SEQUENCES), rate=0.0, epochs=2)
    assert twice.metrics["loss"] == pytest.approx(once.metrics["loss"], abs=1e-6)


def test_the_second_epoch_compares_with_the_policy_before_the_first() -> None:
    policy = build_policy()
    algorithm = Watched(GrpoSpec(inner_epochs=2))
    found = update(policy, sampled(policy, SEQUENCES), algorithm=algorithm, epochs=2, rate=3e-3)
    (first, first_old), (second, second_old) = algorithm.calls
    assert torch.allclose(first, first_old, atol=1e-6)
    assert torch.equal(second_old, first_old)
    assert float((second - second_old).abs().max()) > 0.1
    assert found.metrics["clip_ratio/region_mean"] > 0


def test_the_second_epoch_really_takes_a_step() -> None:
    once, twice = build_policy(), build_policy()
    update(once, sampled(once, SEQUENCES))
    update(twice, sampled(twice, SEQUENCES), epochs=2)
    assert not torch.equal(once.parameters()[0], twice.parameters()[0])


def test_log_probabilities_are_those_of_the_sampling_temperature() -> None:
    policy = build_policy()
    algorithm = Watched(GrpoSpec())
    update(policy, sampled(policy, SEQUENCES[3:4]), algorithm=algorithm)
    with torch.no_grad():
        expected = reference_logprobs(build_policy(), SEQUENCES[3], 0.7)
    assert torch.allclose(algorithm.calls[0][0], expected, atol=1e-5)


@pytest.mark.parametrize("budget", [30, 16])
def test_metrics_are_means_of_tokens_not_of_micro_batches(budget: int) -> None:
    whole_policy, policy = build_policy(), build_policy()
    whole = update(whole_policy, sampled(whole_policy, SEQUENCES, shift=0.3), epochs=2)
    parts = update(policy, sampled(policy, SEQUENCES, shift=0.3), epochs=2, budget=budget)
    assert parts.metrics.keys() == whole.metrics.keys()
    for name, value in whole.metrics.items():
        assert parts.metrics[name] == pytest.approx(value, rel=1e-3, abs=1e-5), name


def test_distance_of_sampler_and_trainer() -> None:
    """The trainer finds each token 0.1 nats likelier: k3 = e^d - d - 1 with d = 0.1."""
    policy = build_policy()
    found = update(policy, sampled(policy, SEQUENCES, shift=-0.1)).metrics
    assert found["sampling/logprob_difference/mean"] == pytest.approx(0.1, abs=1e-4)
    assert found["sampling/logprob_difference/max"] == pytest.approx(0.1, abs=1e-4)
    assert found["sampling/kl"] == pytest.approx(math.exp(0.1) - 0.1 - 1, abs=1e-5)


def test_a_batch_without_gradient_is_finite_and_leaves_fresh_weights() -> None:
    policy, untouched = build_policy(), build_policy()
    found = update(policy, PolicyBatch((), (), (), divisor_tokens=12), epochs=2)
    assert found.skipped == 0
    assert all(math.isfinite(value) for value in found.metrics.values())
    assert found.metrics["loss"] == found.metrics["grad_norm"] == 0.0
    assert "clip_ratio/region_mean" not in found.metrics
    pairs = zip(policy.parameters(), untouched.parameters(), strict=True)
    assert all(torch.equal(weight, other) for weight, other in pairs)


def test_nothing_counted_at_all_is_finite() -> None:
    """All rollouts unscored or masked: no tokens in numerator or denominator."""
    found = update(build_policy(), PolicyBatch((), (), (), divisor_tokens=0))
    assert all(math.isfinite(value) for value in found.metrics.values())


def test_a_loss_that_is_not_finite_is_left_out_and_told() -> None:
    policy, untouched = build_policy(), build_policy()
    batch = sampled(policy, SEQUENCES)
    broken = PolicyBatch(
        batch.sequences, (math.nan, *batch.advantages[1:]), batch.sampler_logprobs, 40
    )
    found = update(policy, broken, epochs=2)
    assert found.skipped == 2
    assert math.isnan(found.metrics["grad_norm"])
    assert math.isnan(found.metrics["loss"])
    pairs = zip(policy.parameters(), untouched.parameters(), strict=True)
    assert all(torch.equal(weight, other) for weight, other in pairs)


def test_lanes_learn_the_same() -> None:
    one, two = build_policy(), build_policy()
    two.use_lanes(2)
    alone = update(one, sampled(one, SEQUENCES), epochs=2)
    side_by_side = update(two, sampled(two, SEQUENCES), epochs=2)
    for name, value in alone.metrics.items():
        assert side_by_side.metrics[name] == pytest.approx(value, rel=1e-3, abs=1e-5), name


def test_every_metric_stands_in_the_catalogue() -> None:
    policy = build_policy()
    found = update(policy, sampled(policy, SEQUENCES))
    assert [name for name in found.metrics if find_metric(name) is None] == []
