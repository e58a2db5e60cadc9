"""Runs with a history, told as a trainer tells them: files in the run directory, events through
`webapp.lifecycle`. Used by page tests and browser tests; the trainer process alone is missing.

Everything is deterministic: completions, scores and curves come from the step number.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from typing import Any

from training_core.contract.events import EVENT, DomainResult, Interval, PairedDifference
from training_core.contract.presets import TINY_COPY
from training_core.contract.rollouts import RewardScore, RolloutGroupRecord, RolloutRecord
from training_core.contract.spec import RunSpec
from webapp import lifecycle
from webapp.accounts.models import User
from webapp.runs.models import Run
from webapp.runs.services import launch_run

Against = Sequence[tuple[int, str, float]]

WORKER = "train@host-a"
START = 1_790_000_000.0


class Story:
    """One run and the attempt that is being told."""

    def __init__(self, run: Run, now: float = START) -> None:
        self.run = run
        self.now = now
        self.seq = 0
        self.claim: lifecycle.Claim | None = None

    def start(self, start_step: int = 0) -> Story:
        """A worker claims the run and its trainer comes up."""
        claim = lifecycle.claim_run(self.run.pk, WORKER, "boot")
        assert claim is not None, f"run is {self.run.state}"
        assert lifecycle.prepare_directory(claim) is None
        self.claim, self.seq = claim, 0
        self.tell(
            "attempt_started",
            attempt=claim.attempt,
            start_step=start_step,
            checkpoint=f"checkpoints/step-{start_step:06d}" if start_step else None,
            total_steps=claim.spec.total_steps,
            pid=4711,
            device="CPU (2 cores)",
            compute_dtype="float32",
            threads=2,
            parameters=1_048_576,
            versions={"torch": "2.13.0", "transformers": "5.24.0"},
        )
        return self

    def tell(self, kind: str, **values: Any) -> Story:
        """Write one event to the attempt's file and have it recorded."""
        assert self.claim is not None
        self.seq += 1
        self.now += 0.5
        event = EVENT.validate_python({"kind": kind, "seq": self.seq, "t": self.now, **values})
        file = self.claim.run_dir.events_file(self.claim.attempt)
        file.parent.mkdir(parents=True, exist_ok=True)
        offset = file.stat().st_size if file.exists() else 0
        with file.open("ab") as lines:
            lines.write(event.model_dump_json().encode() + b"\n")
        batch = lifecycle.read_batch(file, offset)
        lifecycle.record_events(self.run.pk, self.claim.attempt, batch)
        self.run.refresh_from_db()
        return self

    def say(self, text: str) -> Story:
        """Print to the console."""
        assert self.claim is not None
        file = self.claim.run_dir.console_file(self.claim.attempt)
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("ab") as console:
            console.write(text.encode())
        lifecycle.console_grew(self.run.pk, self.claim.attempt, file.stat().st_size)
        return self

    def phase(self, step: int, phase: str, done: int, total: int, **more: Any) -> Story:
        """The bar inside the step."""
        values = {"unit": "rollouts", "tokens_per_s": None, "stage": "rl", **more}
        return self.tell("phase", step=step, phase=phase, done=done, total=total, **values)

    def step(self, step: int, stage: str = "rl", **values: float) -> Story:
        """One finished step with plausible numbers."""
        rise = 1 - math.exp(-step / 30)
        noise = random.Random(step).uniform(-0.05, 0.05)
        numbers = {
            "reward": 0.1 + 0.7 * rise + noise,
            "rewards/correctness/mean": 0.05 + 0.7 * rise + noise,
            "rewards/format/mean": min(1.0, 0.4 + 0.6 * rise),
            "reward_std": 0.4 - 0.2 * rise,
            "frac_reward_zero_std": 0.2 * rise,
            "completions/mean_length": 14 + 3 * noise,
            "entropy": 1.4 - rise,
            "grad_norm": 0.8 + noise,
            "learning_rate": 3e-4,
            "time/step": 0.5,
        }
        return self.tell("metrics", step=step, stage=stage, values={**numbers, **values})

    def rollouts(
        self, step: int, kind: str = "train", groups: int = 3, size: int = 4, stage: str = "rl"
    ) -> Story:
        """Groups of completions in a rollout file."""
        records = [make_group(step, index, kind, size, stage) for index in range(groups)]
        return self.write_rollouts(step, records, kind, stage)

    def write_rollouts(
        self,
        step: int,
        records: Sequence[RolloutGroupRecord],
        kind: str = "train",
        stage: str = "rl",
    ) -> Story:
        """These groups in a rollout file."""
        assert self.claim is not None
        file = self.claim.run_dir.rollout_file(self.claim.attempt, kind, step)
        file.parent.mkdir(parents=True, exist_ok=True)
        content = b"".join(record.model_dump_json().encode() + b"\n" for record in records)
        offset = file.stat().st_size if file.exists() else 0
        with file.open("ab") as lines:
            lines.write(content)
        return self.tell(
            "rollouts",
            step=step,
            stage=stage,
            rollout_kind=kind,
            file=str(file.relative_to(self.claim.run_dir.root)),
            offset_bytes=offset,
            length_bytes=len(content),
            groups=len(records),
        )

    def evaluate(
        self,
        step: int,
        label: str,
        title: str,
        share: float,
        against: Sequence[tuple[int, str, float]] = (),
    ) -> Story:
        """A held-out result; `against` lists (step, words, difference)."""
        compared = tuple(
            PairedDifference(against_step=s, against_label=words, difference=interval(d, 0.08))
            for s, words, d in against
        )
        results = [
            DomainResult(
                domain=domain,
                pass_at_1=interval(share, 0.07),
                reward=interval(0.3 + 0.7 * share, 0.05),
                components={
                    "correctness": interval(share, 0.07),
                    "format": interval(min(1.0, 0.5 + share), 0.04),
                },
                unscored=0,
                mean_length_tokens=14.2,
                truncated_frac=0.02,
                compared=compared,
            )
            for domain in ("all", "math/add-digits")
        ]
        self.tell(
            "evaluation",
            step=step,
            stage="rl" if step > 60 else "warm-up",
            label=label,
            title=title,
            recipe="r1",
            seconds=2.5,
            results=[result.model_dump() for result in results],
        )
        values = {"eval/pass@1": share, "eval/reward": 0.3 + 0.7 * share}
        return self.tell("metrics", step=step, stage="rl", values=values)

    def checkpoint(self, step: int, *, best: bool = False, removed: Sequence[str] = ()) -> Story:
        """A saved state, with something on disk."""
        assert self.claim is not None
        folder = self.claim.run_dir.checkpoint(step)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "manifest.json").write_text(json.dumps({"step": step}))
        return self.tell(
            "checkpoint",
            step=step,
            stage="rl",
            path=str(folder.relative_to(self.claim.run_dir.root)),
            size_bytes=12_600_000,
            is_best=best,
            pass_at_1=0.5 if best else None,
            removed=list(removed),
        )

    def finish(self, outcome: str, cause: str, message: str, advice: str = "") -> Run:
        """The trainer says that it ends, and the supervisor settles the run."""
        assert self.claim is not None
        ending: dict[str, Any] = {
            "outcome": outcome,
            "cause": cause,
            "message": message,
            "advice": advice,
        }
        self.tell("attempt_finished", step=self.run.step, retryable=False, **ending)
        lifecycle.finish_attempt(self.claim, lifecycle.Verdict(**ending))
        self.run.refresh_from_db()
        return self.run


def launch(owner: User, name: str = "Tiny model, one minute", **changes: Any) -> Run:
    """Queue a run like the tiny preset's, of 60 steps of warm-up and 60 of RL."""
    document = TINY_COPY.spec.model_dump(mode="json")
    for stage in document["stages"]:
        stage["steps"] = 60
    spec = RunSpec.model_validate({**document, "name": name, **changes})
    return launch_run(owner=owner, spec=spec, preset=TINY_COPY.slug)


def interval(value: float, half: float) -> Interval:
    """An estimate of 96 items."""
    return Interval(value=value, low=value - half, high=value + half, n=96)


def make_group(step: int, index: int, kind: str, size: int, stage: str) -> RolloutGroupRecord:
    """One group: an addition, answered right more often as training goes on."""
    chance = random.Random(step * 1000 + index)
    held_out = kind == "evaluate"
    terms = random.Random(index) if held_out else chance  # held-out prompts are the same for ever
    left, right = terms.randrange(10), terms.randrange(10)
    rollouts = [_rollout(i, left + right, step, chance, kind) for i in range(size)]
    rewards = [rollout.reward or 0.0 for rollout in rollouts]
    mean = sum(rewards) / size
    spread = math.sqrt(sum((r - mean) ** 2 for r in rewards) / (size - 1)) if size > 1 else None
    rollouts = [
        rollout.model_copy(update={"advantage": (reward - mean) / (spread + 1e-4)})
        if kind == "train" and spread is not None
        else rollout
        for rollout, reward in zip(rollouts, rewards, strict=True)
    ]
    return RolloutGroupRecord.model_validate(
        {
            "group_id": f"{kind}-{step}-{index}",
            "step": step,
            "stage": stage,
            "kind": kind,
            "domain": "math/add-digits",
            "prompt_id": f"p{index}" if held_out else f"p{step}-{index}",
            "messages": [{"role": "user", "content": f"What is {left} + {right}?"}],
            "prompt_tokens": 15,
            "answer": str(left + right),
            "rollouts": [rollout.model_dump() for rollout in rollouts],
            "reward_mean": mean,
            "reward_std": spread,
            "zero_spread": len(set(rewards)) == 1,
        }
    )


def _rollout(index: int, answer: int, step: int, chance: random.Random, kind: str) -> RolloutRecord:
    """One completion: right, wrong, without its tag, or cut off."""
    is_right = chance.random() < 0.15 + min(0.75, step / 100)
    has_tag = is_right or chance.random() < 0.7
    said = answer if is_right else answer + chance.choice((-2, -1, 1, 10))
    text = f"<answer>{said}</answer>" if has_tag else f"The sum is {said}, because"
    correct, tidy = float(is_right and has_tag), float(has_tag)
    return RolloutRecord(
        index=index,
        completion=text + ("<|im_end|>" if has_tag else ""),
        text=text,
        tokens=14 if has_tag else 32,
        token_ids=(1, 2, 3),
        logprobs=(-0.1, -0.2, -0.3),
        finish_reason="eos" if has_tag else "length",
        scores=(
            RewardScore(
                name="correctness",
                weight=0.7,
                status="ok",
                value=correct,
                explanation=f"The answer {said} {'equals' if correct else 'is not'} {answer}.",
            ),
            RewardScore(
                name="format",
                weight=0.3,
                status="ok",
                value=tidy,
                explanation="The tag answer stands once." if tidy else "There is no tag answer.",
            ),
        ),
        reward=0.7 * correct + 0.3 * tidy,
        advantage=None,
        passed=correct == 1.0,
    )
