"""Tryouts as a worker leaves them; the process alone is missing. Used by page and browser tests."""

from __future__ import annotations

import json
from collections.abc import Sequence

from tests.webapp.glass.steps import claim
from training_core.contract.events import Interval
from training_core.contract.glass import GlassEnd, GlassProgress
from training_core.contract.rollouts import RewardScore
from training_core.contract.spec import RunSpec
from training_core.contract.tryout import TryoutResult, TryoutRow, TryoutSpec, TryoutTry
from webapp import lifecycle
from webapp.accounts.models import User
from webapp.datasets import services
from webapp.datasets.check_page import CheckPage
from webapp.datasets.mapping import Mapping
from webapp.datasets.models import DatasetVersion
from webapp.glass.models import GlassStep
from webapp.glass.services import ask_for_tryout

RIGHT, WRONG, BARE = "right", "wrong", "bare"


def version_of(
    owner: User, answers: Sequence[str], name: str = "mine", prompt: str = "question {i}"
) -> DatasetVersion:
    """An imported dataset with these answers."""
    rows = (
        json.dumps({"prompt": prompt.format(i=i, answer=a), "answer": a})
        for i, a in enumerate(answers)
    )
    job = services.store_upload(owner, "a.jsonl", [f"{row}\n".encode() for row in rows])
    services.start_import(job, name, Mapping("prompt", "answer"), "")
    services.run_import(job.pk)
    job.refresh_from_db()
    assert job.version is not None, job.message
    return job.version


def thought_of(version: DatasetVersion) -> CheckPage:
    """The check page as it opens."""
    return CheckPage.opening(version)


def ask_tryout(owner: User, version: DatasetVersion, key: str = "") -> GlassStep:
    """A tryout that waits, of what is proposed."""
    page = thought_of(version)
    spec = page.launchable_spec
    assert spec is not None, page.faults
    return ask_for_tryout(owner, version, page.make_tryout(spec), key)


def grow(step: GlassStep, *texts: str) -> None:
    """The process has come this far."""
    step.directory.write_progress(
        GlassProgress(phase="sample", done=1, total=step.read_tryout().tries * 8, texts=texts)
    )


def finish_tryout(step: GlassStep, *kinds: str, **changes: object) -> GlassStep:
    """The process is done; `kinds` are those of the tries, row after row, used again and again."""
    held = claim(step)
    spec = held.spec
    assert isinstance(spec, TryoutSpec)
    held.directory.write_result(make_tryout(spec, *kinds, **changes))
    assert lifecycle.finish_glass(held, GlassEnd(outcome="done", cause="done", message="Done."))
    step.refresh_from_db()
    return step


def make_tryout(spec: TryoutSpec, *kinds: str, **changes: object) -> TryoutResult:
    """A plausible result."""
    rows = []
    place = 0
    for record in spec.records:
        tries = []
        for _ in range(spec.tries):
            tries.append(_try(spec.run, record.answer, kinds[place % len(kinds)]))
            place += 1
        rows.append(
            TryoutRow(
                record_id=record.record_id,
                messages=record.messages,
                prompt=f"<|user|>{record.messages[-1].content}<|assistant|>",
                prompt_tokens=17,
                answer=record.answer,
                tries=tuple(tries),
            )
        )
    every = [one for row in rows for one in row.tries]
    passed = [bool(one.passed) for one in every]
    form = [one.scores[1].value or 0.0 for one in every]
    share = sum(passed) / len(passed)
    fields: dict[str, object] = {
        "architecture": "LlamaForCausalLM",
        "parameters": 134_515_008,
        "device": "CPU (2 cores)",
        "compute_dtype": "float32",
        "rows": tuple(rows),
        "pass_at_1": Interval(
            value=share, low=max(0.0, share - 0.2), high=min(1.0, share + 0.2), n=8
        ),
        "components": {"correctness": share, "format": sum(form) / len(form)},
        "seconds": {"load": 2.0, "sample": 4.0},
    }
    return TryoutResult.model_validate(fields | changes)


def _try(run: RunSpec, answer: str, kind: str) -> TryoutTry:
    """One completion: right in its tags, wrong in its tags, or wrong without any."""
    text = {
        RIGHT: f"<answer>{answer}</answer>",
        WRONG: "<answer>-1</answer>",
        BARE: "I think it is 3.",
    }.get(kind, kind)
    right, form = float(kind == RIGHT), float(kind in {RIGHT, WRONG})
    return TryoutTry(
        text=text,
        tokens=7,
        finish_reason="length" if kind == BARE else "eos",
        scores=(
            RewardScore(
                name=run.evaluation.success_reward,
                weight=0.7,
                status="ok",
                value=right,
                explanation="equal" if right else "it differs",
            ),
            RewardScore(
                name="format", weight=0.3, status="ok", value=form, explanation="as it says"
            ),
        ),
        reward=0.7 * right + 0.3 * form,
        passed=bool(right),
    )
