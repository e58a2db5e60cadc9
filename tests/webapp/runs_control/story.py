"""Write a run directory as a trainer would, event by event: input for the control plane's tests."""

from __future__ import annotations

from typing import Any

from training_core.contract import events as ev
from training_core.contract.domains import Message
from training_core.contract.rollouts import RewardScore, RolloutGroupRecord, RolloutRecord
from training_core.contract.rundir import RunDir

START = 1_800_000_000.0


class Story:
    """One attempt's events file, in the making. Every call appends one whole line."""

    def __init__(self, run_dir: RunDir, attempt: int, total_steps: int = 12) -> None:
        self.run_dir = run_dir
        self.attempt = attempt
        self.total_steps = total_steps
        self.seq = 0
        self.t = START + 1000 * attempt
        self.path = run_dir.events_file(attempt)
        self.path.parent.mkdir(parents=True, exist_ok=True)

    def add(self, event_class: Any, **fields: Any) -> ev.Event:
        """Append an event."""
        self.seq += 1
        self.t += 1.0
        event: ev.Event = event_class(seq=self.seq, t=self.t, **fields)
        with self.path.open("ab") as file:
            file.write(event.model_dump_json().encode() + b"\n")
        return event

    def started(self, step: int = 0) -> ev.Event:
        return self.add(
            ev.AttemptStarted,
            attempt=self.attempt,
            start_step=step,
            checkpoint=f"checkpoints/step-{step:06d}" if step else None,
            total_steps=self.total_steps,
            pid=4711,
            device="2 CPU cores",
            compute_dtype="float32",
            threads=1,
            parameters=1000,
            versions={"torch": "2.13.0"},
        )

    def stage(self, name: str, index: int, step: int) -> ev.Event:
        return self.add(ev.StageStarted, step=step, stage=name, index=index)

    def phase(self, step: int, done: int, phase: str = "rollout") -> ev.Event:
        return self.add(
            ev.PhaseProgress,
            step=step,
            stage="rl",
            phase=phase,
            done=done,
            total=8,
            unit="rollouts",
        )

    def metrics(self, step: int, **values: float) -> ev.Event:
        named = {"reward": step / 10, "loss": 0.5, **values}
        return self.add(ev.MetricsLogged, step=step, stage="rl", values=named)

    def rollouts(self, step: int, groups: int = 2) -> ev.Event:
        """Write groups to the step's file and tell of them."""
        path = self.run_dir.rollout_file(self.attempt, "train", step)
        path.parent.mkdir(parents=True, exist_ok=True)
        offset = path.stat().st_size if path.exists() else 0
        lines = b"".join(
            group_record(f"{self.attempt}-{step}-{index}", step).model_dump_json().encode() + b"\n"
            for index in range(groups)
        )
        with path.open("ab") as file:
            file.write(lines)
        return self.add(
            ev.RolloutsWritten,
            step=step,
            stage="rl",
            rollout_kind="train",
            file=str(path.relative_to(self.run_dir.root)),
            offset_bytes=offset,
            length_bytes=len(lines),
            groups=groups,
        )

    def evaluation(self, step: int, label: str = "interval", passed: float = 0.5) -> ev.Event:
        interval = ev.Interval(value=passed, low=passed - 0.1, high=passed + 0.1, n=10)
        result = ev.DomainResult(
            domain="all",
            pass_at_1=interval,
            reward=interval,
            components={"correctness": interval},
            unscored=0,
            mean_length_tokens=3.0,
            truncated_frac=0.0,
        )
        return self.add(
            ev.EvaluationFinished,
            step=step,
            stage="rl",
            label=label,
            title=f"step {step}",
            recipe="abc",
            seconds=0.5,
            results=(result,),
        )

    def checkpoint(self, step: int, removed: tuple[int, ...] = (), best: bool = False) -> ev.Event:
        path = self.run_dir.checkpoint(step)
        path.mkdir(parents=True, exist_ok=True)
        (path / "manifest.json").write_text("{}")
        return self.add(
            ev.CheckpointSaved,
            step=step,
            stage="rl",
            path=f"checkpoints/step-{step:06d}",
            size_bytes=123,
            is_best=best,
            pass_at_1=0.5 if best else None,
            removed=tuple(f"checkpoints/step-{old:06d}" for old in removed),
        )

    def notice(self, step: int, code: str = "spike", message: str = "Look here.") -> ev.Event:
        return self.add(ev.Notice, step=step, level="warning", code=code, message=message)

    def finished(self, step: int, outcome: str = "succeeded", **fields: Any) -> ev.Event:
        told = {"cause": "done", "message": "All steps are done.", **fields}
        return self.add(ev.AttemptFinished, step=step, outcome=outcome, **told)


def tell_six_steps(story: Story) -> None:
    """An attempt that saved after steps 2 and 4 and was killed after step 6."""
    story.started()
    story.stage("rl", 0, 0)
    for step in range(1, 7):
        story.phase(step, done=4)
        story.rollouts(step)
        story.metrics(step)
        if step % 2 == 0 and step < 6:
            story.checkpoint(step, removed=(2,) if step == 4 else (), best=True)
    story.evaluation(6)
    story.notice(6)


def group_record(group_id: str, step: int) -> RolloutGroupRecord:
    """A group of one rollout."""
    rollout = RolloutRecord(
        index=0,
        completion="<answer>3</answer>",
        text="<answer>3</answer>",
        tokens=3,
        token_ids=(1, 2, 3),
        logprobs=(-0.1, -0.2, -0.3),
        finish_reason="eos",
        scores=(
            RewardScore(name="correctness", weight=1, status="ok", value=1.0, explanation="3 = 3"),
        ),
        reward=1.0,
        advantage=0.5,
        passed=True,
    )
    return RolloutGroupRecord(
        group_id=group_id,
        step=step,
        stage="rl",
        kind="train",
        domain="math/add",
        prompt_id="p1",
        messages=(Message(role="user", content="1 + 2"),),
        prompt_tokens=5,
        answer="3",
        rollouts=(rollout,),
        reward_mean=1.0,
        reward_std=None,
        zero_spread=True,
    )
