"""The sft stage: only the assistant's tokens count, the end of turn among them."""

from __future__ import annotations

import math

import pytest
import torch
from accelerate import Accelerator

from tests.training_core.models.policies import build_policy, reference_logprobs
from training_core.algorithms.learner import Learner
from training_core.contract.domains import Message
from training_core.contract.stages import OptimiserSpec
from training_core.failures import BadData
from training_core.models.optimiser import build_optimiser
from training_core.models.packing import TokenSequence
from training_core.models.policy import Policy
from training_core.sft import demonstration_sequence, imitate

TALKS = [("2 + 3 =", "5"), ("What is 10 + 20?", "<answer>30</answer>"), ("1 + 1 =", "2")]


def user(text: str) -> tuple[Message, ...]:
    return (Message(role="user", content=text),)


def sequences(policy: Policy) -> list[TokenSequence]:
    return [demonstration_sequence(policy, user(question), reply) for question, reply in TALKS]


def learner(policy: Policy, budget: int = 10_000) -> Learner:
    return Learner(policy, Accelerator(cpu=True), budget, lambda *_, **__: None)


def one_step(policy: Policy, rate: float, budget: int = 10_000) -> dict[str, float]:
    optimiser = build_optimiser(OptimiserSpec(learning_rate=rate), policy.parameters())
    found = imitate(learner(policy, budget), optimiser, sequences(policy), 1e9)
    assert found.skipped == 0
    return dict(found.metrics)


def test_reply_and_end_of_turn_are_learnt_and_nothing_else(policy: Policy) -> None:
    sequence = demonstration_sequence(policy, user("2 + 3 ="), "<answer>5</answer>")
    decode = policy.tokenizer.decode
    assert decode(sequence.prompt_ids) == "<|bos|><|user|>2 + 3 =<|assistant|>"
    assert decode(sequence.completion_ids) == "<answer>5</answer><|eos|>"
    assert sequence.completion_ids[-1] == policy.facts.turn_end_id


def test_loss_is_the_mean_over_the_windows_assistant_tokens(policy: Policy) -> None:
    """By the model's own forward; a mean of the three replies' means would be another number."""
    with torch.no_grad():
        rows = [-reference_logprobs(policy, sequence) for sequence in sequences(policy)]
    tokens = sum(len(row) for row in rows)
    expected = float(torch.cat(rows).sum()) / tokens
    mean_of_means = sum(float(row.mean()) for row in rows) / 3
    assert abs(expected - mean_of_means) > 0.01
    for budget in (10_000, 40):
        found = one_step(build_policy(), rate=0.0, budget=budget)
        assert found["sft/loss"] == pytest.approx(expected, abs=1e-5)


def test_gradient_is_that_of_the_assistants_tokens_alone() -> None:
    found, expected = build_policy(), build_policy()
    optimiser = build_optimiser(OptimiserSpec(learning_rate=0.0), found.parameters())
    rows = [-reference_logprobs(expected, sequence) for sequence in sequences(expected)]
    torch.cat(rows).mean().backward()
    norm = math.sqrt(sum(float(w.grad.square().sum()) for w in expected.parameters()))  # type: ignore[union-attr]
    metrics = imitate(learner(found), optimiser, sequences(found), 1e9).metrics
    assert metrics["grad_norm"] == pytest.approx(norm, rel=1e-4)


def test_imitation_makes_the_replies_likelier() -> None:
    policy = build_policy()
    first = one_step(policy, rate=1e-3)["sft/loss"]
    for _ in range(5):
        last = one_step(policy, rate=1e-3)["sft/loss"]
    assert last < first - 0.5


def test_accuracy_is_the_share_of_tokens_that_greedy_would_have_chosen(policy: Policy) -> None:
    hits = tokens = 0
    for sequence in sequences(policy):
        ids = torch.tensor([[*sequence.prompt_ids, *sequence.completion_ids]])
        with torch.no_grad():
            logits = policy.model(input_ids=ids).logits[0, len(sequence.prompt_ids) - 1 : -1]
        hits += int((logits.argmax(-1) == torch.tensor(sequence.completion_ids)).sum())
        tokens += len(sequence.completion_ids)
    assert one_step(build_policy(), rate=0.0)["sft/token_accuracy"] == hits / tokens


def test_a_demonstration_that_exceeds_the_context_is_refused() -> None:
    policy = build_policy(context_tokens=20)
    assert demonstration_sequence(policy, user("x" * 10), "y" * 6)
    with pytest.raises(BadData, match="demonstration has 21 tokens") as caught:
        demonstration_sequence(policy, user("x" * 10), "y" * 7)
    assert "longer context" in caught.value.advice
