"""Steps under glass as a worker leaves them: rows through `webapp.lifecycle`, files as the process
writes them. Used by page tests and browser tests; the process alone is missing."""

from __future__ import annotations

import math
from typing import Any
from uuid import UUID

from training_core.contract.domains import Message
from training_core.contract.glass import (
    GlassCompletion,
    GlassEnd,
    GlassPhase,
    GlassProgress,
    GlassResult,
    GlassSource,
)
from training_core.contract.rollouts import RewardScore
from webapp import lifecycle
from webapp.accounts.models import Project, User
from webapp.glass.forms import GlassForm
from webapp.glass.models import GlassStep
from webapp.glass.services import ask_for_step
from webapp.glass.subjects import Subject, base_subjects
from webapp.lifecycle import GlassClaim

WORKER = "train@host-a"
TEXTS = ("<answer>15</answer>", "15", "<answer>16</answer>", "I think 15.")
PROMPT = (
    Message(role="system", content="Reply with the number inside <answer></answer>."),
    Message(role="user", content="What is 7 + 8?"),
)
FIELDS = {
    "kind": "domain",
    "index": "3",
    "group_size": "4",
    "max_new_tokens": "16",
    "temperature": "1.0",
    "learning_rate": "0.001",
    "seed": "0",
}
SOURCE = GlassSource(
    part="advantages",
    function="training_core.losses.advantages.group_advantages",
    file="training_core/losses/advantages.py",
    line=20,
    doc="A_i = (r_i - mean_g) / (std_g + eps)",
)


def ask(owner: User, subject: Subject | None = None, **fields: str) -> GlassStep:
    """A step that waits; on the tiny base model unless told otherwise."""
    subject = subject or base_subjects()[1]
    form = GlassForm(subject, {**FIELDS, "domain": subject.spec.domains[0].name, **fields})
    assert form.is_valid(), form.errors
    project = subject.project or Project.objects.main()
    return ask_for_step(owner, project, subject, form.make_spec())


def claim(step: GlassStep) -> GlassClaim:
    """A worker has it."""
    found = lifecycle.claim_glass(step.pk, WORKER)
    assert found is not None
    found.directory.begin(found.spec)
    step.refresh_from_db()
    return found


def show(step: GlassStep, phase: GlassPhase, done: int, *texts: str) -> None:
    """The process has come this far."""
    total = 4 if phase == "sample" else 0
    messages = PROMPT if texts else ()
    step.directory.write_progress(
        GlassProgress(phase=phase, done=done, total=total, messages=messages, texts=texts)
    )


def finish(step: GlassStep, result: GlassResult | None = None) -> GlassStep:
    """The process is done."""
    held = claim(step)
    held.directory.write_result(result or make_result())
    assert lifecycle.finish_glass(held, GlassEnd(outcome="done", cause="done", message="Done."))
    step.refresh_from_db()
    return step


def fail(step: GlassStep, cause: str, message: str, advice: str) -> GlassStep:
    """The process has failed."""
    held = claim(step)
    held.directory.console_file.write_text("Traceback\nRuntimeError: something broke\n")
    end = GlassEnd(outcome="failed", cause=cause, message=message, advice=advice)
    assert lifecycle.finish_glass(held, end)
    step.refresh_from_db()
    return step


def make_result(
    rewards: tuple[float | None, ...] = (1.0, 0.0, 0.3, 0.0),
    texts: tuple[str, ...] = TEXTS,
    **changes: Any,
) -> GlassResult:
    """A plausible result; advantages follow the rewards, probabilities the advantages."""
    scored = [reward for reward in rewards if reward is not None]
    mean = sum(scored) / len(scored) if scored else None
    std = math.sqrt(sum((r - (mean or 0)) ** 2 for r in scored) / max(1, len(scored) - 1))
    completions = tuple(
        _completion(i, text, reward, _advantage(reward, mean, std))
        for i, (text, reward) in enumerate(zip(texts, rewards, strict=True))
    )
    counted = [one for one in completions if one.is_counted]
    tokens = sum(len(one.token_ids) for one in counted)
    total = sum((one.advantage or 0) * len(one.token_ids) for one in counted)
    fields: dict[str, Any] = {
        "architecture": "LlamaForCausalLM",
        "parameters": 1_048_576,
        "device": "CPU (2 cores)",
        "compute_dtype": "float32",
        "domain": "math/add",
        "messages": PROMPT,
        "prompt_tokens": 31,
        "answer": "15",
        "completions": completions,
        "reward_mean": mean,
        "reward_std": std if len(scored) > 1 else None,
        "std_eps": 1e-6,
        "divisor_tokens": max(1, tokens),
        "loss": -total / max(1, tokens),
        "grad_norm": 1.73 if std else 0.0,
        "max_grad_norm": 1.0,
        "learning_rate": 1e-3,
        "optimiser_steps": 0,
        "kl": 0.0123 if std else 0.0,
        "weight_change": 1.02 if std else 0.0,
        "weights_moved": 1_048_000 if std else 0,
        "seconds": {"load": 0.4, "sample": 0.6},
        "sources": (SOURCE,),
    }
    return GlassResult(**(fields | changes))


def _advantage(reward: float | None, mean: float | None, std: float) -> float | None:
    if reward is None or mean is None:
        return None
    return (reward - mean) / (std + 1e-6) if std else 0.0


def _completion(
    index: int, text: str, reward: float | None, advantage: float | None
) -> GlassCompletion:
    pieces = (*_words(text), "<|eos|>")
    before = tuple(-0.2 - 0.35 * (place % 5) for place in range(len(pieces)))
    push = 0.3 * (advantage or 0.0)
    after = tuple(
        min(-0.01, logprob + push * (0.2 + 0.4 * (place % 3)))
        for place, logprob in enumerate(before)
    )
    return GlassCompletion(
        index=index,
        text=text,
        finish_reason="eos" if index != 3 else "length",
        scores=(
            RewardScore(
                name="correctness",
                weight=0.7,
                status="gold_bad" if reward is None else "ok",
                value=None if reward is None else float(reward == 1.0),
                explanation="answer 15 equals 15" if reward == 1.0 else "no <answer> tag",
            ),
        ),
        reward=reward,
        advantage=advantage,
        is_counted=advantage is not None,
        token_ids=tuple(range(len(pieces))),
        pieces=pieces,
        before=before,
        after=after,
        next_clip=tuple(
            "high" if a - b > 0.3 else "low" if b - a > 0.3 else ""
            for b, a in zip(before, after, strict=True)
        ),
    )


def _words(text: str) -> list[str]:
    """The text in pieces of up to three characters, as a tokenizer might cut it."""
    return [text[start : start + 3] for start in range(0, len(text), 3)]


def step_of(glass_id: UUID) -> GlassStep:
    """The row as it is now."""
    return GlassStep.objects.get(pk=glass_id)
