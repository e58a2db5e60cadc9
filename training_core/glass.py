"""One step under glass: one group, one update, looked at token by token.

Called by `workers.glass_main`. Made of the very functions that train a run, in their order:
`collect_groups`, `score_groups`, `token_advantages`, `update_policy`; a test holds its weights
against those of a run's step, bit for bit. What is added is the looking: log-probabilities of all
completions before and after, and how far the weights have moved.

A step under glass is the first of a stage: the reference is the policy itself, so that a divergence
is 0 and pulls nowhere yet.

What would surprise: with one update the ratio of new and old probability is 1 while the loss is
computed, so nothing is clipped, whatever happens to the probabilities by it; what a *second* update
on the same group would find is told apart (`next_clip`). A group whose rewards are all equal has a
gradient of 0, and yet AdamW takes its step: weight decay and kept moments move weights.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from accelerate import Accelerator

from training_core.algorithms.advantages import (
    OUTCOME,
    Earned,
    Judged,
    earned_by,
    token_advantages,
)
from training_core.algorithms.learner import Learner
from training_core.algorithms.update import UpdateResult, UpdateSettings, update_policy
from training_core.contract.algorithms import GroupRelativeSpec
from training_core.contract.domains import Message
from training_core.contract.glass import (
    Clip,
    GlassCompletion,
    GlassResult,
    GlassSource,
    GlassSpec,
)
from training_core.losses.advantages import STD_EPS, mean_and_std, per_reward
from training_core.losses.policy_gradient import (
    MAX_LOG_RATIO,
    cispo_surrogate,
    clipped_surrogate,
    log_ratio,
    reinforce_surrogate,
    surrogate_loss,
)
from training_core.losses.reduction import Window
from training_core.losses.returns import whiten
from training_core.models.device import ComputePlan
from training_core.models.logprobs import HeadSettings, completion_logprobs
from training_core.models.optimiser import build_optimiser, set_learning_rate
from training_core.models.packing import TokenSequence
from training_core.models.policy import Policy
from training_core.rollouts.collect import PromptRequest, collect_groups, score_groups
from training_core.rollouts.engine import GenerationSettings
from training_core.tryout import SamplingOnlooker
from training_core.types import PolicyRow, RolloutGroup

HALF_CHARACTER = "\N{REPLACEMENT CHARACTER}"
SURROGATES: dict[str, Callable[..., Any]] = {
    "clip": clipped_surrogate,
    "cispo": cispo_surrogate,
    "reinforce": reinforce_surrogate,
}
OF_TOKENS: dict[str, Callable[..., Any]] = {"whitened": whiten, "per_reward": per_reward}
"""Advantages that `OUTCOME` does not have."""


class Onlooker(SamplingOnlooker, Protocol):
    """Told how far the step is."""

    def show_prompt(
        self, messages: Sequence[Message], completions: int, decode: Callable[[Sequence[int]], str]
    ) -> None:
        """The prompt, before its completions grow."""


@dataclass
class Bench:
    """What a step is taken with."""

    policy: Policy
    """Its weights change."""
    plan: ComputePlan
    accelerator: Accelerator
    optimiser: torch.optim.Optimizer
    """Fresh, or with the moments of a checkpoint."""
    onlooker: Onlooker

    @classmethod
    def prepare(
        cls,
        policy: Policy,
        plan: ComputePlan,
        accelerator: Accelerator,
        spec: GlassSpec,
        onlooker: Onlooker,
    ) -> Bench:
        """A bench with a fresh optimiser, as a stage that begins has it."""
        optimiser = build_optimiser(spec.stage.optimiser, policy.parameters())
        return cls(policy, plan, accelerator, optimiser, onlooker)


@dataclass(frozen=True)
class _Measured:
    """What was looked at around the update. One entry for each completion."""

    before: list[torch.Tensor]
    after: list[torch.Tensor]
    weight_change: float
    weights_moved: int
    optimiser_steps: int


def take_glass_step(bench: Bench, spec: GlassSpec, prompt: PromptRequest) -> GlassResult:
    """Sample the group, score it, follow its advantages once. The policy keeps the new weights.

    Raises what its parts raise: BadData for a prompt without room, OutOfMemory.
    """
    onlooker, algorithm = bench.onlooker, spec.stage.algorithm
    groups = _collect(bench, spec, prompt)
    onlooker.begin("score", len(prompt.seeds))
    (group,) = score_groups(spec.reward, groups, onlooker.update)
    limit = spec.stage.sampling.max_new_tokens
    earnings = [earned_by(algorithm, rollout, limit) for rollout in group.rollouts]
    judged = [
        Judged(group.group_id, rollout.tokens, earned)
        for rollout, earned in zip(group.rollouts, earnings, strict=True)
    ]
    advantages = token_advantages(algorithm, judged)
    update, measured = _update(bench, spec, group, advantages)
    onlooker.finish()
    return _result(bench, spec, group, earnings, advantages, update, measured)


def text_pieces(decode: Callable[[Sequence[int]], str], token_ids: Sequence[int]) -> list[str]:
    """The text that each token adds; joined, they are the text of all.

    A token that ends inside a character adds nothing yet. Decoding beginnings, not single tokens,
    keeps the spaces that some tokenizers drop at the start of a text.
    """
    pieces: list[str] = []
    shown = ""
    for end in range(1, len(token_ids) + 1):
        text = decode(token_ids[:end])
        is_whole = not text.endswith(HALF_CHARACTER) or end == len(token_ids)
        if not is_whole or not text.startswith(shown):
            pieces.append("")
            continue
        pieces.append(text[len(shown) :])
        shown = text
    return pieces


def _collect(bench: Bench, spec: GlassSpec, prompt: PromptRequest) -> list[RolloutGroup]:
    """The group, without scores yet; its completions are shown as they grow."""
    onlooker, size = bench.onlooker, len(prompt.seeds)
    onlooker.show_prompt(prompt.item.messages, size, bench.policy.raw_text)
    onlooker.begin("sample", size)
    sampling = spec.stage.sampling
    settings = GenerationSettings(sampling.max_new_tokens, sampling.temperature, size)
    return collect_groups(
        bench.policy,
        [prompt],
        settings,
        lambda done, _: onlooker.update(done),
        on_tokens=onlooker.grow,
    )


def _update(
    bench: Bench, spec: GlassSpec, group: RolloutGroup, advantages: Sequence[torch.Tensor | None]
) -> tuple[UpdateResult, _Measured]:
    """The step itself, with log-probabilities of the whole group around it."""
    onlooker, stage = bench.onlooker, spec.stage

    def progress(done: int, total: int, *, may_abandon: bool) -> None:
        del may_abandon
        onlooker.update(done, total)

    learner = Learner(bench.policy, bench.accelerator, spec.resources.micro_batch_tokens, progress)
    sequences = [
        TokenSequence(group.prompt_ids, rollout.completion.token_ids) for rollout in group.rollouts
    ]
    head = HeadSettings(stage.sampling.temperature)
    onlooker.begin("before")
    before = learner.logprobs(sequences, head)
    weights = [weight.detach().to("cpu", copy=True) for weight in bench.policy.parameters()]
    optimiser_steps = _steps_done(bench.optimiser)
    onlooker.begin("update")
    set_learning_rate(bench.optimiser, stage.optimiser.learning_rate)
    settings = UpdateSettings(
        stage.algorithm.model_copy(update={"inner_epochs": 1, "minibatches": 1}),
        stage.sampling.temperature,
        stage.sampling.max_new_tokens,
        stage.optimiser.max_grad_norm,
    )
    update = update_policy(learner, bench.optimiser, _rows(group, advantages), settings)
    onlooker.begin("after")
    after = learner.logprobs(sequences, head)
    change, moved = _distance(weights, bench.policy)
    return update, _Measured(before, after, change, moved, optimiser_steps)


def _rows(group: RolloutGroup, advantages: Sequence[torch.Tensor | None]) -> list[PolicyRow]:
    """What the policy learns from, as in a run."""
    return [
        PolicyRow(
            TokenSequence(group.prompt_ids, rollout.completion.token_ids),
            advantages_N.float(),
            torch.tensor(rollout.completion.logprobs),
        )
        for rollout, advantages_N in zip(group.rollouts, advantages, strict=True)
        if advantages_N is not None and rollout.tokens > 0
    ]


def _distance(weights: Sequence[torch.Tensor], policy: Policy) -> tuple[float, int]:
    """Norm of (weights now - weights then) over all weights, and how many differ."""
    square, moved = 0.0, 0
    for old, weight in zip(weights, policy.parameters(), strict=True):
        difference = weight.detach().cpu() - old
        square += float(difference.double().square().sum())
        moved += int(torch.count_nonzero(difference))
    return math.sqrt(square), moved


def _steps_done(optimiser: torch.optim.Optimizer) -> int:
    """Steps that the moments have seen; 0 for fresh ones."""
    steps = [int(state["step"]) for state in optimiser.state.values() if "step" in state]
    return max(steps, default=0)


def _result(
    bench: Bench,
    spec: GlassSpec,
    group: RolloutGroup,
    earnings: Sequence[Earned | None],
    advantages: Sequence[torch.Tensor | None],
    update: UpdateResult,
    measured: _Measured,
) -> GlassResult:
    """Everything for the page."""
    item, facts = group.item, bench.policy.facts
    rewards = [earned.reward for earned in earnings if earned is not None]
    mean, std = mean_and_std(rewards) if rewards else (None, None)
    completions = tuple(
        _completion(bench.policy, spec, group, index, earnings[index], advantages[index], measured)
        for index in range(len(group.rollouts))
    )
    return GlassResult(
        architecture=facts.architecture,
        parameters=facts.parameters,
        device=bench.plan.device_words,
        compute_dtype=bench.plan.dtype_name,
        domain=item.domain,
        messages=item.messages,
        prompt_tokens=len(group.prompt_ids),
        answer=item.answer,
        completions=completions,
        reward_mean=mean,
        reward_std=std if len(rewards) > 1 else None,
        std_eps=STD_EPS,
        divisor_tokens=max(1, sum(len(one.token_ids) for one in completions if one.is_counted)),
        loss=update.metrics["loss"],
        grad_norm=update.metrics["grad_norm"],
        max_grad_norm=spec.stage.optimiser.max_grad_norm,
        learning_rate=spec.stage.optimiser.learning_rate,
        optimiser_steps=measured.optimiser_steps,
        kl=mean_distance(measured.before, measured.after),
        weight_change=measured.weight_change,
        weights_moved=measured.weights_moved,
        seconds=dict(bench.onlooker.seconds),
        sources=tuple(_source(part, function) for part, function in ran(spec.stage.algorithm)),
    )


def ran(algorithm: GroupRelativeSpec) -> list[tuple[str, Callable[..., Any]]]:
    """Parts of a step and the functions that they are."""
    advantage = algorithm.advantage
    return [
        ("logprobs", completion_logprobs),
        ("advantages", OUTCOME.get(advantage) or OF_TOKENS[advantage]),
        ("surrogate", SURROGATES[algorithm.surrogate]),
        ("reduction", Window.token_weight),
        ("update", update_policy),
        ("optimiser", build_optimiser),
    ]


def _completion(
    policy: Policy,
    spec: GlassSpec,
    group: RolloutGroup,
    index: int,
    earned: Earned | None,
    advantages_N: torch.Tensor | None,
    measured: _Measured,
) -> GlassCompletion:
    """One completion with its probabilities."""
    algorithm, rollout = spec.stage.algorithm, group.rollouts[index]
    before_N, after_N = measured.before[index].cpu(), measured.after[index].cpu()
    weights_N = torch.zeros_like(before_N) if advantages_N is None else advantages_N.to(before_N)
    lengths_B = torch.tensor([len(before_N)])
    moved_N = log_ratio(after_N, before_N, lengths_B, algorithm.ratio)
    again = surrogate_loss(algorithm, after_N, moved_N, weights_N)
    sides: list[Clip] = [
        "low" if low else "high" if high else ""
        for low, high in zip(
            again.clipped_low_N.tolist(), again.clipped_high_N.tolist(), strict=True
        )
    ]
    return GlassCompletion(
        index=index,
        text=rollout.text,
        finish_reason=rollout.completion.finish_reason,
        scores=rollout.scores,
        reward=rollout.reward,
        trained_reward=None if earned is None else earned.reward,
        advantage=_mean_advantage(advantages_N),
        is_counted=advantages_N is not None,
        token_ids=rollout.completion.token_ids,
        pieces=tuple(text_pieces(policy.raw_text, rollout.completion.token_ids)),
        before=tuple(before_N.tolist()),
        after=tuple(after_N.tolist()),
        next_clip=tuple(sides),
    )


def _mean_advantage(advantages_N: torch.Tensor | None) -> float | None:
    """Over the tokens of a completion; None when it has no say."""
    if advantages_N is None:
        return None
    return float(advantages_N.mean()) if len(advantages_N) else 0.0


def mean_distance(before: Sequence[torch.Tensor], after: Sequence[torch.Tensor]) -> float:
    """KL(before || after) in nats a token, estimated on tokens that were drawn before the step.

    Mean of r - 1 - log r with r = p_after / p_before, never below 0 (k3 in Schulman 2020,
    "Approximating KL divergence"). Shapes: lists of (N,).
    """
    difference_N = (torch.cat(list(after)) - torch.cat(list(before))).double()
    held_N = difference_N.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO)
    return float((held_N.expm1() - held_N).mean())


def _source(part: str, function: Callable[..., Any]) -> GlassSource:
    """Where a function stands and what it says of itself."""
    return GlassSource.model_validate(
        {
            "part": part,
            "function": f"{function.__module__}.{function.__qualname__}",
            "file": f"{function.__module__.replace('.', '/')}.py",
            "line": inspect.getsourcelines(function)[1],
            "doc": inspect.getdoc(function) or "",
        }
    )
