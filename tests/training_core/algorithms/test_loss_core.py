"""Loss and gradient of every algorithm: as the papers write them, however the window is cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch

from tests.training_core.algorithms.papers import Said, say, window_loss
from tests.training_core.algorithms.rows import TEMPERATURE, WHOLE, learner_of, ragged_rows
from tests.training_core.algorithms.specs import each_algorithm, each_spec
from tests.training_core.models.policies import build_policy
from training_core.algorithms.tally import Tally
from training_core.algorithms.update import UpdateSettings, needs_gradient, window_gradient
from training_core.contract.algorithms import GroupRelativeSpec, GrpoSpec, Reduction
from training_core.losses.policy_loss import TokenInputs, policy_loss
from training_core.models import logprobs as logprobs_module
from training_core.models.logprobs import HeadSettings, completion_logprobs
from training_core.models.packing import PackedBatch, build_batch, plan_rows
from training_core.models.policy import Policy
from training_core.types import PolicyRow

LONGEST = 12


def settings_of(spec: GroupRelativeSpec) -> UpdateSettings:
    return UpdateSettings(
        spec, TEMPERATURE, LONGEST, max_grad_norm=1.0, coefficient=spec.divergence.coefficient
    )


def gradient_vector(policy: Policy) -> torch.Tensor:
    found = torch.cat(
        [
            torch.zeros_like(w).flatten() if w.grad is None else w.grad.flatten()
            for w in policy.parameters()
        ]
    )
    policy.clear_gradients()
    return found.double()


def follow(
    policy: Policy, spec: GroupRelativeSpec, rows: Sequence[PolicyRow], budget: int = WHOLE
) -> tuple[float, torch.Tensor, int]:
    """Loss, gradient and number of micro-batches of one window."""
    tallies = window_gradient(learner_of(policy, budget=budget), rows, settings_of(spec))
    return Tally.together(tallies)["loss"], gradient_vector(policy), len(tallies)


@pytest.fixture(scope="module")
def exact() -> Policy:
    """Shared by tests that leave its weights as they are."""
    return build_policy(dtype=torch.float64)


@each_spec
def test_loss_and_gradient_are_those_of_the_paper(exact: Policy, spec: GroupRelativeSpec) -> None:
    rows = ragged_rows(exact)
    loss, gradient, _ = follow(exact, spec, rows)
    now = say(exact, rows)
    expected = window_loss(spec, rows, now, now, LONGEST)
    expected.backward()  # type: ignore[no-untyped-call]
    wanted = gradient_vector(exact)
    assert loss == pytest.approx(expected.item(), abs=1e-9)
    assert float(wanted.norm()) > 1e-3
    assert float((gradient - wanted).norm()) <= 1e-9 * float(wanted.norm())


@each_spec
def test_the_gradient_is_the_slope_of_the_loss(spec: GroupRelativeSpec) -> None:
    """A small step along a random direction, either way; what the formula holds fixed is held."""
    policy = build_policy(dtype=torch.float64)
    rows = ragged_rows(policy)
    _, gradient, _ = follow(policy, spec, rows)
    generator = torch.Generator().manual_seed(5)
    direction = torch.randn(len(gradient), generator=generator, dtype=torch.float64)
    direction += gradient / gradient.norm() * direction.norm()
    step = 1e-6 / float(direction.norm())
    with torch.no_grad():
        fixed = say(policy, rows)
        above = moved_loss(policy, spec, rows, fixed, direction * step)
        below = moved_loss(policy, spec, rows, fixed, direction * -step)
    slope = (above - below) / (2 * step)
    assert slope == pytest.approx(float(gradient @ direction), rel=2e-5)


def moved_loss(
    policy: Policy,
    spec: GroupRelativeSpec,
    rows: Sequence[PolicyRow],
    fixed: Sequence[Said],
    change: torch.Tensor,
) -> float:
    """The paper's loss of the policy with that change, which is taken back."""
    parts = torch.split(change, [weight.numel() for weight in policy.parameters()])
    for weight, part in zip(policy.parameters(), parts, strict=True):
        weight.add_(part.view_as(weight))
    loss = float(window_loss(spec, rows, say(policy, rows), fixed, LONGEST))
    for weight, part in zip(policy.parameters(), parts, strict=True):
        weight.sub_(part.view_as(weight))
    return loss


@each_spec
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float64, 1e-9), (torch.float32, 1e-5)], ids=["f64", "f32"]
)
def test_cutting_the_window_changes_nothing(
    spec: GroupRelativeSpec, dtype: torch.dtype, tolerance: float
) -> None:
    policy = build_policy(dtype=dtype)
    rows = ragged_rows(policy)
    loss, whole, _ = follow(policy, spec, rows)
    for budget, parts in ((40, 2), (16, 4)):
        cut_loss, cut, count = follow(policy, spec, rows, budget)
        assert count == parts
        assert cut_loss == pytest.approx(loss, abs=tolerance * max(1.0, abs(loss)))
        assert float((cut - whole).norm()) <= tolerance * float(whole.norm())


@each_spec
def test_two_shares_add_up_to_the_window(exact: Policy, spec: GroupRelativeSpec) -> None:
    """Rows without a gradient stay in the divisor: half of them advantage 0."""
    rows = [
        replace(row, advantages_N=row.advantages_N * (place % 2))
        for place, row in enumerate(ragged_rows(exact))
    ]
    loss, gradient, _ = follow(exact, spec, rows)
    now = say(exact, rows)
    expected = window_loss(spec, rows, now, now, LONGEST)
    assert loss == pytest.approx(expected.item(), abs=1e-9)
    unneeded = [row for row in rows if not needs_gradient(row, settings_of(spec))]
    has_more = spec.divergence.is_in("loss") or spec.entropy_coefficient > 0
    assert len(unneeded) == (0 if has_more else 3)
    assert float(gradient.norm()) > 0


def padded(batch: PackedBatch, left: int, right: int) -> PackedBatch:
    """The batch with more columns of padding on either side of each row."""
    rows, length = batch.input_ids_RT.shape
    seen = batch.mask_R1TT
    if seen is None:
        seen = torch.ones(length, length, dtype=torch.bool).tril().repeat(rows, 1, 1)[:, None]
    grown = left + length + right
    mask = torch.eye(grown, dtype=torch.bool).repeat(rows, 1, 1)[:, None]
    mask[:, :, left : left + length, left : left + length] = seen
    fill = torch.nn.functional.pad
    row_of_S, place_of_S = batch.source_S // length, batch.source_S % length
    return replace(
        batch,
        input_ids_RT=fill(batch.input_ids_RT, (left, right), value=5),
        position_ids_RT=fill(batch.position_ids_RT, (left, right)),
        mask_R1TT=mask,
        source_S=row_of_S * grown + left + place_of_S,
    )


@pytest.mark.parametrize(("left", "right"), [(0, 3), (0, 7), (3, 0), (7, 0), (3, 7)])
def test_padding_on_either_side_changes_nothing(left: int, right: int) -> None:
    policy = build_policy()
    rows = ragged_rows(policy)
    sequences = [row.sequence for row in rows]
    batch = build_batch(sequences, plan_rows(sequences, share=True), pad_id=0)
    found = completion_logprobs(policy, batch, HeadSettings(TEMPERATURE)).logprobs_N
    gradient = follow_sum(policy, found)
    more = completion_logprobs(policy, padded(batch, left, right), HeadSettings(TEMPERATURE))
    assert float((more.logprobs_N - found).detach().abs().max()) < 1e-5
    assert float((follow_sum(policy, more.logprobs_N) - gradient).norm()) <= 1e-5 * float(
        gradient.norm()
    )


def follow_sum(policy: Policy, logprobs_N: torch.Tensor) -> torch.Tensor:
    (logprobs_N * torch.linspace(-1, 1, len(logprobs_N))).sum().backward()  # type: ignore[no-untyped-call]
    return gradient_vector(policy)


@each_spec
def test_logits_in_chunks_have_the_same_gradient(
    exact: Policy, spec: GroupRelativeSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = ragged_rows(exact)
    loss, whole, _ = follow(exact, spec, rows)
    monkeypatch.setattr(logprobs_module, "KEPT_LOGIT_BYTES", 0)
    monkeypatch.setattr(logprobs_module, "CHUNK_TOKENS", 5)
    again, chunked, _ = follow(exact, spec, rows)
    assert again == pytest.approx(loss, abs=1e-9)
    assert float((chunked - whole).norm()) <= 1e-9 * float(whole.norm())


@each_algorithm
def test_a_fresh_policy_has_ratio_1_and_pulls_by_the_advantage_alone(
    spec: GroupRelativeSpec,
) -> None:
    """At ratio 1 clip and weights say nothing: d loss / d log pi = -A times the divisor's share."""
    logprobs_N = torch.tensor([-1.0, -2.0, -0.5], dtype=torch.float64, requires_grad=True)
    held_N = logprobs_N.detach()
    advantages_N = torch.tensor([1.5, 1.5, -0.5], dtype=torch.float64)
    tokens = TokenInputs(logprobs_N, held_N, held_N, advantages_N, torch.tensor([2, 1]), held_N)
    found = policy_loss(spec, spec.divergence.coefficient, tokens)
    (gradient,) = torch.autograd.grad(found.loss_N.sum(), logprobs_N)
    assert gradient.tolist() == pytest.approx(expected_pull(spec, advantages_N).tolist())
    assert found.surrogate.ratio_N.tolist() == [1.0] * 3


def expected_pull(spec: GroupRelativeSpec, advantages_N: torch.Tensor) -> torch.Tensor:
    """The trajectory's ratio moves with each of its tokens, and stands at each of them."""
    if spec.ratio != "trajectory":
        return -advantages_N
    return torch.tensor([-3.0, -3.0, 0.5], dtype=torch.float64)


@pytest.mark.parametrize("reduction", ["token_mean", "sequence_mean", "constant"])
def test_a_window_without_rows_is_nothing(exact: Policy, reduction: Reduction) -> None:
    loss, gradient, count = follow(exact, GrpoSpec(reduction=reduction), [])
    assert (loss, float(gradient.norm()), count) == (0.0, 0.0, 0)
