"""An rl update as a whole: which way it pushes, what it compares with, what it counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
import torch

from tests.training_core.algorithms.rows import (
    ADVANTAGES,
    SEQUENCES,
    TEMPERATURE,
    WHOLE,
    learner_of,
    plain_rows,
    ragged_rows,
)
from tests.training_core.algorithms.specs import each_algorithm
from tests.training_core.models.policies import build_policy, reference_logprobs
from training_core.algorithms import update as update_module
from training_core.algorithms.update import (
    UpdateResult,
    UpdateSettings,
    plan_windows,
    update_policy,
    with_old_logprobs,
)
from training_core.contract.algorithms import (
    CorrectionSpec,
    DivergenceSpec,
    GroupRelativeSpec,
    GrpoSpec,
)
from training_core.contract.metrics import find_metric
from training_core.contract.stages import OptimiserSpec
from training_core.losses.policy_loss import PolicyLoss, TokenInputs, policy_loss
from training_core.models.optimiser import build_optimiser
from training_core.models.packing import TokenSequence
from training_core.models.policy import Policy
from training_core.types import PolicyRow

Watch = Callable[[], list[TokenInputs]]
TOKENS = sum(len(sequence.completion_ids) for sequence in SEQUENCES)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[TokenInputs]:
    """What the loss was computed from, micro-batch after micro-batch."""
    found: list[TokenInputs] = []

    def watched(spec: GroupRelativeSpec, coefficient: float, tokens: TokenInputs) -> PolicyLoss:
        found.append(tokens)
        return policy_loss(spec, coefficient, tokens)

    monkeypatch.setattr(update_module, "policy_loss", watched)
    return found


def settings_of(spec: GroupRelativeSpec, coefficient: float = 0.0) -> UpdateSettings:
    return UpdateSettings(spec, TEMPERATURE, longest=12, max_grad_norm=1.0, coefficient=coefficient)


def update(
    policy: Policy,
    rows: Sequence[PolicyRow],
    spec: GroupRelativeSpec | None = None,
    *,
    budget: int = WHOLE,
    rate: float = 1e-3,
    coefficient: float = 0.0,
) -> UpdateResult:
    optimiser = build_optimiser(OptimiserSpec(learning_rate=rate), policy.parameters())
    settings = settings_of(spec or GrpoSpec(), coefficient)
    return update_policy(learner_of(policy, budget=budget), optimiser, rows, settings)


def epochs(n: int) -> GrpoSpec:
    return GrpoSpec(inner_epochs=n)


@torch.no_grad()
def log_probability(policy: Policy, sequence: TokenSequence) -> float:
    return float(reference_logprobs(policy, sequence).sum())


@each_algorithm
@pytest.mark.parametrize("sign", [1, -1])
def test_a_good_completion_becomes_likelier_and_a_bad_one_less(
    spec: GroupRelativeSpec, sign: int
) -> None:
    policy = build_policy()
    row = plain_rows(policy)[3]
    row = replace(row, advantages_N=torch.full((row.tokens,), float(sign)))
    before = log_probability(policy, row.sequence)
    update(policy, [row], spec)
    assert (log_probability(policy, row.sequence) - before) * sign > 0.01


def test_one_window_has_ratio_one_and_no_clipping(seen: list[TokenInputs]) -> None:
    policy = build_policy()
    found = update(policy, plain_rows(policy))
    assert all(torch.equal(one.logprobs_N.detach(), one.old_N) for one in seen)
    assert found.metrics["clip_ratio/region_mean"] == 0.0
    assert found.metrics["ratio/mean"] == found.metrics["ratio/max"] == 1.0
    assert found.metrics["ratio/first_deviation_max"] == 0.0
    assert found.metrics["sampling/logprob_difference/max"] < 1e-5
    # With ratio 1 the loss is -sum(A * tokens) / divisor.
    pairs = zip(SEQUENCES, ADVANTAGES, strict=True)
    total = sum(len(one.completion_ids) * advantage for one, advantage in pairs)
    assert found.metrics["loss"] == pytest.approx(-total / TOKENS, abs=1e-6)
    assert found.metrics["advantage/tokens_with_gradient"] == 1.0
    assert found.metrics["advantage/abs_max"] == 1.5
    assert found.skipped == 0


def test_rows_without_advantage_count_in_the_divisor() -> None:
    policy = build_policy()
    rows = [
        row if place else replace(row, advantages_N=torch.zeros(row.tokens))
        for place, row in enumerate(plain_rows(policy))
    ]
    found = update(policy, rows).metrics
    pairs = list(zip(SEQUENCES, ADVANTAGES, strict=True))[1:]
    total = sum(len(one.completion_ids) * advantage for one, advantage in pairs)
    assert found["loss"] == pytest.approx(-total / TOKENS, abs=1e-6)
    assert found["advantage/tokens_with_gradient"] == pytest.approx(1 - 4 / TOKENS)


def test_the_loss_of_two_epochs_is_their_mean() -> None:
    """Without a step between them both have the same."""
    one, two = build_policy(), build_policy()
    once = update(one, plain_rows(one), rate=0.0)
    twice = update(two, plain_rows(two), epochs(2), rate=0.0)
    assert twice.metrics["loss"] == pytest.approx(once.metrics["loss"], abs=1e-6)


def test_the_second_epoch_compares_with_the_policy_before_the_first(
    seen: list[TokenInputs],
) -> None:
    policy = build_policy()
    found = update(policy, plain_rows(policy), epochs(2), rate=3e-3)
    first, second = seen
    assert torch.equal(first.logprobs_N.detach(), first.old_N)
    assert torch.equal(second.old_N, first.old_N)
    assert float((second.logprobs_N.detach() - second.old_N).abs().max()) > 0.1
    assert found.metrics["clip_ratio/region_mean"] > 0
    assert found.metrics["ratio/first_deviation_max"] == 0.0


@pytest.mark.parametrize(("budget", "lanes"), [(WHOLE, 1), (30, 1), (WHOLE, 2)])
def test_the_first_ratio_of_each_window_is_exactly_1(
    seen: list[TokenInputs], budget: int, lanes: int
) -> None:
    """Old log-probabilities are computed in the very batches in which they are compared."""
    policy = build_policy()
    policy.use_lanes(lanes)
    spec = GrpoSpec(minibatches=2, inner_epochs=2)
    found = update(policy, plain_rows(policy), spec, budget=budget, rate=0.0)
    assert found.metrics["ratio/first_deviation_max"] == 0.0
    first = seen[: len(seen) // 2]
    assert all(torch.equal(one.logprobs_N.detach(), one.old_N) for one in first)


def test_minibatches_are_updates_of_their_own(seen: list[TokenInputs]) -> None:
    policy = build_policy()
    rows = plain_rows(policy)
    found = update(policy, rows, GrpoSpec(minibatches=3))
    assert [len(one.lengths_B) for one in seen] == [2, 2, 2]
    assert sum(len(one.logprobs_N) for one in seen) == TOKENS
    assert found.metrics["ratio/max"] > 1.0


@pytest.mark.parametrize(("rows", "count"), [(6, 3), (7, 3), (2, 5), (0, 2), (5, 1)])
def test_every_epoch_goes_through_each_row_once(rows: int, count: int) -> None:
    settings = settings_of(GrpoSpec(minibatches=count, inner_epochs=2))
    plans = [plan_windows(rows, settings, epoch) for epoch in (0, 1)]
    for windows in plans:
        assert len(windows) == count
        assert sorted(index for window in windows for index in window) == list(range(rows))
        sizes = [len(window) for window in windows]
        assert max(sizes) - min(sizes) <= 1
    assert plans == [plan_windows(rows, settings, epoch) for epoch in (0, 1)]
    other = replace(settings, seed=1)
    if rows > count > 1:
        assert plans[0] != plans[1] or plans != [plan_windows(rows, other, e) for e in (0, 1)]


def test_old_log_probabilities_that_are_known_are_kept() -> None:
    policy = build_policy()
    stale = replace(plain_rows(policy)[0], old_N=torch.full((4,), -9.0), is_stale=True)
    found = with_old_logprobs(learner_of(policy), [stale], settings_of(epochs(2)))
    assert found == [stale]


def test_a_stale_row_is_compared_with_what_sampled_it(seen: list[TokenInputs]) -> None:
    """Its ratio is not 1 at first, and that is no fault of the trainer."""
    policy = build_policy()
    fresh, stale = plain_rows(policy)[:2]
    stale = replace(stale, old_N=stale.sampler_N - 0.1, is_stale=True)
    found = update(policy, [fresh, stale])
    assert found.metrics["ratio/max"] == pytest.approx(math.exp(0.1), rel=1e-4)
    assert found.metrics["ratio/first_deviation_max"] == 0.0


def test_log_probabilities_are_those_of_the_sampling_temperature(seen: list[TokenInputs]) -> None:
    policy = build_policy()
    update(policy, plain_rows(policy)[3:4])
    with torch.no_grad():
        expected = reference_logprobs(build_policy(), SEQUENCES[3], TEMPERATURE)
    assert torch.allclose(seen[0].logprobs_N.detach(), expected, atol=1e-5)


@pytest.mark.parametrize("budget", [40, 16])
def test_metrics_are_means_of_tokens_not_of_micro_batches(budget: int) -> None:
    whole_policy, policy = build_policy(), build_policy()
    whole = update(whole_policy, plain_rows(whole_policy, shift=0.3), epochs(2))
    parts = update(policy, plain_rows(policy, shift=0.3), epochs(2), budget=budget)
    assert parts.metrics.keys() == whole.metrics.keys()
    for name, value in whole.metrics.items():
        assert parts.metrics[name] == pytest.approx(value, rel=1e-3, abs=1e-5), name


def test_distance_of_sampler_and_trainer() -> None:
    """The trainer finds each token 0.1 nats likelier: k3 = e^d - d - 1 with d = 0.1."""
    policy = build_policy()
    spec = GrpoSpec(correction=CorrectionSpec(level="token"))
    found = update(policy, plain_rows(policy, shift=-0.1), spec).metrics
    assert found["sampling/logprob_difference/mean"] == pytest.approx(0.1, abs=1e-4)
    assert found["sampling/logprob_difference/max"] == pytest.approx(0.1, abs=1e-4)
    assert found["sampling/kl"] == pytest.approx(math.exp(0.1) - 0.1 - 1, abs=1e-5)
    assert found["sampling/importance_weight/mean"] == pytest.approx(math.exp(0.1), abs=1e-4)


@pytest.mark.parametrize(
    ("spec", "coefficient", "trained"),
    [
        (GrpoSpec(), 0.0, 0),
        (GrpoSpec(divergence=DivergenceSpec(coefficient=0.1)), 0.1, TOKENS),
        (GrpoSpec(entropy_coefficient=0.1), 0.0, TOKENS),
    ],
)
def test_what_pulls_without_an_advantage(
    spec: GroupRelativeSpec, coefficient: float, trained: int
) -> None:
    """Equal rewards: nothing to learn, but divergence and entropy keep their say."""
    policy, untouched = build_policy(), build_policy()
    rows = [
        replace(row, advantages_N=torch.zeros(row.tokens), old_N=None)
        for row in ragged_rows(policy)
    ]
    found = update(policy, rows, spec, coefficient=coefficient)
    assert found.metrics["advantage/tokens_with_gradient"] == trained / TOKENS
    pairs = zip(policy.parameters(), untouched.parameters(), strict=True)
    assert any(not torch.equal(weight, other) for weight, other in pairs) is (trained > 0)


def test_a_batch_without_gradient_is_finite_and_leaves_fresh_weights() -> None:
    policy, untouched = build_policy(), build_policy()
    rows = [replace(row, advantages_N=torch.zeros(row.tokens)) for row in plain_rows(policy)]
    found = update(policy, rows, epochs(2))
    assert found.skipped == 0
    assert all(math.isfinite(value) for value in found.metrics.values())
    assert found.metrics["loss"] == found.metrics["grad_norm"] == 0.0
    assert "clip_ratio/region_mean" not in found.metrics
    pairs = zip(policy.parameters(), untouched.parameters(), strict=True)
    assert all(torch.equal(weight, other) for weight, other in pairs)


def test_nothing_counted_at_all_is_finite() -> None:
    """All rollouts unscored or masked: no tokens in numerator or denominator."""
    found = update(build_policy(), [])
    assert all(math.isfinite(value) for value in found.metrics.values())


def test_a_loss_that_is_not_finite_is_left_out_and_told() -> None:
    policy, untouched = build_policy(), build_policy()
    first, *others = plain_rows(policy)
    broken = replace(first, advantages_N=torch.full((first.tokens,), math.nan))
    found = update(policy, [broken, *others], epochs(2))
    assert found.skipped == 2
    assert math.isnan(found.metrics["grad_norm"])
    assert math.isnan(found.metrics["loss"])
    pairs = zip(policy.parameters(), untouched.parameters(), strict=True)
    assert all(torch.equal(weight, other) for weight, other in pairs)


def test_lanes_learn_the_same() -> None:
    one, two = build_policy(), build_policy()
    two.use_lanes(2)
    alone = update(one, plain_rows(one), epochs(2))
    side_by_side = update(two, plain_rows(two), epochs(2))
    for name, value in alone.metrics.items():
        assert side_by_side.metrics[name] == pytest.approx(value, rel=1e-3, abs=1e-5), name


def test_every_metric_stands_in_the_catalogue() -> None:
    policy = build_policy()
    found = update(policy, plain_rows(policy))
    assert [name for name in found.metrics if find_metric(name) is None] == []
