"""The sft stage: imitate demonstrations; only the assistant's tokens count.

Called by `training_core.train`. Prompt ids come from the chat template, the demonstration's ids
follow with the end of turn: the very tokens that sampling would give, never a second rendering.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from training_core.algorithms.learner import Learner
from training_core.algorithms.update import UpdateResult
from training_core.boundary import finish_step
from training_core.contract.domains import Message
from training_core.contract.stages import SftStage
from training_core.curriculum.mix import MixState, next_prompts
from training_core.failures import BadData
from training_core.losses.reduction import measure_window
from training_core.models.chat import demonstration_ids, prompt_ids
from training_core.models.logprobs import TokenLogprobs
from training_core.models.optimiser import set_learning_rate
from training_core.models.packing import PackedBatch, TokenSequence
from training_core.models.policy import Policy
from training_core.monitors.phase import phase
from training_core.program import PlannedStage
from training_core.session import Session, Stopwatch

_Tally = tuple[float, int]
"""Sum of losses, and tokens predicted right."""


def run_sft_stage(session: Session, stage: PlannedStage, spec: SftStage) -> None:
    """Imitate a batch of demonstrations in each step that is left."""
    optimiser = session.open_stage(stage)
    for step in stage.steps_after(session.state.step):
        watch = Stopwatch()
        mix, sequences = draw_demonstrations(session, spec.batch_size)
        set_learning_rate(optimiser, stage.learning_rate(step))
        with phase(
            session.log, "sft", step=step, stage=spec.name, total=0, unit="micro-batches"
        ) as report:
            session.learner.progress = session.update_progress(report)
            result = imitate(session.learner, optimiser, sequences, spec.optimiser.max_grad_norm)
        seconds = watch.lap("update")
        trained = sum(len(s.prompt_ids) + len(s.completion_ids) for s in sequences)
        state = session.state.model_copy(
            update={
                "step": step,
                "mix": mix,
                "num_prompts": session.state.num_prompts + len(sequences),
                "trained_s": session.state.trained_s + watch.total(),
                "skipped_in_a_row": (session.state.skipped_in_a_row + 1) * result.skipped,
                "micro_batch_tokens": session.learner.micro_batch_tokens,
            }
        )
        values = {
            **result.metrics,
            **watch.values,
            "learning_rate": stage.learning_rate(step),
            "num_prompts": float(state.num_prompts),
            "perf/train_tokens_per_s": trained / seconds,
        }
        finish_step(session, stage, state, values)


def draw_demonstrations(session: Session, n: int) -> tuple[MixState, list[TokenSequence]]:
    """The next n demonstrations of the mix, and the mix's state after them."""
    mix, picks = next_prompts(session.state.mix, session.spec.domains, n)
    sequences = []
    for pick in picks:
        source = session.sources[pick.domain]
        item = source.prompt(pick.prompt_index)
        sequences.append(
            demonstration_sequence(session.policy, item.messages, source.demonstration(item))
        )
    return mix, sequences


def demonstration_sequence(
    policy: Policy, messages: Sequence[Message], reply: str
) -> TokenSequence:
    """A prompt and its demonstration as ids. Raises BadData when the context is too short."""
    sequence = TokenSequence(
        prompt_ids(policy.tokenizer, messages),
        demonstration_ids(policy.tokenizer, reply, policy.facts.turn_end_id),
    )
    length = len(sequence.prompt_ids) + len(sequence.completion_ids)
    if length > policy.facts.context_tokens:
        raise BadData(
            f"A demonstration has {length:,} tokens with its prompt; the model's context holds"
            f" {policy.facts.context_tokens:,}.",
            "Leave such records out of the dataset, or choose a model with a longer context.",
        )
    return sequence


def imitate(
    learner: Learner,
    optimiser: torch.optim.Optimizer,
    sequences: Sequence[TokenSequence],
    max_grad_norm: float,
) -> UpdateResult:
    """One optimiser step on the cross-entropy of the assistant's tokens.

    loss = -sum(log pi(token)) / assistant tokens of the whole window, prompt tokens not counted.
    """
    tokens = sum(len(sequence.completion_ids) for sequence in sequences)
    window = measure_window(learner.accelerator, tokens=tokens, sequences=len(sequences))
    weight = window.token_weight("token_mean", 0, 0)

    def cross_entropy(_: PackedBatch, found: TokenLogprobs) -> tuple[torch.Tensor, _Tally]:
        loss_N = -found.logprobs_N
        return loss_N * weight, (float(loss_N.detach().double().sum()), int(found.hit_N.sum()))

    tallies = learner.accumulate(sequences, cross_entropy)
    norm = learner.apply(optimiser, max_grad_norm=max_grad_norm)
    metrics = {
        "sft/loss": sum(loss for loss, _ in tallies) / tokens,
        "sft/token_accuracy": sum(hits for _, hits in tallies) / tokens,
        "grad_norm": math.nan if norm is None else norm,
    }
    return UpdateResult(metrics, int(norm is None))
