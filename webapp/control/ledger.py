"""What each kind of event changes. Made by `record` for one batch, inside its transaction.

The handlers are `_on_KIND`, found by the event's kind. Points of metrics are collected and stored
at the end in one call; hints for open pages are collected too, the last of each kind counts.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from training_core.contract import events as ev
from training_core.contract.metrics import find_metric
from webapp.control import checkpoints, pace
from webapp.control.notices import add_notice
from webapp.control.rollout_files import read_groups
from webapp.control.texts import clean_json, clean_text, number_word
from webapp.evaluation import services as evaluations
from webapp.metrics import live
from webapp.metrics import services as metrics
from webapp.metrics.read import read_series
from webapp.metrics.services import MetricPoint
from webapp.rollouts import services as rollouts
from webapp.runs.models import Attempt, ControlRequest, Run
from webapp.runs.moves import move
from webapp.runs.status import Actor, RunState

Hint = tuple[str, str, dict[str, Any]]
RUN_COLUMNS = ("step", "total_steps", "stage", "phase", "latest", "pace", "eta_s")
ATTEMPT_COLUMNS = (
    "start_step",
    "last_step",
    "device",
    "facts",
    "outcome",
    "cause",
    "message",
    "advice",
    "retryable",
    "ingest_offset",
    "last_seq",
)


class Ledger:
    """The changes of one batch to one locked run and one locked attempt."""

    def __init__(self, run: Run, attempt: Attempt, *, is_replay: bool) -> None:
        self.run = run
        self.attempt = attempt
        self.is_replay = is_replay
        self.spec = run.read_spec()
        self.last_t = attempt.started_at.timestamp()
        self._pace = pace.Pace(**run.pace) if run.pace else None
        self._points: list[MetricPoint] = []
        self._hints: dict[tuple[str, str], dict[str, Any]] = {}

    @property
    def is_current(self) -> bool:
        """Whether no later attempt has begun: an older one's late events leave the run alone."""
        return self.is_replay or self.attempt.number == self.run.attempt

    def apply(self, event: ev.Event) -> None:
        """Change what the event changes."""
        self.last_t = event.t
        handler = getattr(self, f"_on_{event.kind}")
        handler(event)

    def close(self) -> None:
        """Store the collected points and both rows."""
        if self._points:
            metrics.append_points(self.run.pk, self.attempt.number, self._points)
        self.run.pace = self._pace._asdict() if self._pace else None
        self.run.save(update_fields=RUN_COLUMNS)
        self.attempt.save(update_fields=ATTEMPT_COLUMNS)

    def hints(self) -> list[Hint]:
        """What open pages should hear."""
        return [(topic, kind, data) for (topic, kind), data in self._hints.items()]

    def _hint(self, topic_kind: str, **data: object) -> None:
        """The run's page should fetch news of this kind."""
        head = {"run": str(self.run.pk), "attempt": self.attempt.number}
        self._hints[f"run:{self.run.pk}", topic_kind] = {**head, **data}

    def _hint_table(self) -> None:
        """The table of runs should draw this row again."""
        topic = live.project_topic("runs", self.run.project_id)
        self._hints[topic, "metric"] = {
            "run": str(self.run.pk),
            "number": self.run.number,
            "step": self.run.step,
        }

    def _on_attempt_started(self, event: ev.AttemptStarted) -> None:
        """Everything that earlier attempts did beyond the starting point is superseded."""
        run_id, number, step = self.run.pk, self.attempt.number, event.start_step
        self.attempt.start_step = self.attempt.last_step = step
        self.attempt.device = clean_text(event.device, 200)
        self.attempt.facts = clean_json(
            event.model_dump(
                mode="json",
                include={"pid", "compute_dtype", "threads", "parameters", "versions", "checkpoint"},
            )
        )
        metrics.supersede_after(run_id, number, step)
        rollouts.supersede_after(run_id, number, step)
        evaluations.supersede_after(run_id, number, step)
        if gone := checkpoints.supersede_after(self.attempt, step, event.t):
            self._note(event, "checkpoint_gone", _gone(gone, step))
        self._hint("metric", step=step)
        if not self.is_current:
            return
        self.run.step, self.run.total_steps = step, event.total_steps
        self._pace = pace.start_pace(event.t, step)
        self._refresh_latest()
        if self.run.state == RunState.STARTING and not self.is_replay:
            self._mark_running()
        self._hint_table()

    def _mark_running(self) -> None:
        """The trainer is up."""
        self.run.save(update_fields=RUN_COLUMNS)  # the move reads the row again
        move(
            self.run,
            RunState.RUNNING,
            actor=Actor.WORKER,
            who=self.attempt.worker,
            cause="started",
        )

    def _on_phase(self, event: ev.PhaseProgress) -> None:
        """The bar inside the step."""
        if not self.is_current:
            return
        self.run.phase = clean_json(event.model_dump(mode="json", exclude={"kind", "seq"}))
        self._hint("phase", **self.run.phase, eta_s=self.run.eta_s, run_step=self.run.step)

    def _on_stage_started(self, event: ev.StageStarted) -> None:
        """Another stage has another pace."""
        if self.is_current:
            self.run.stage = event.stage
            self.run.eta_s = None
            self._pace = pace.start_pace(event.t, event.step)

    def _on_metrics(self, event: ev.MetricsLogged) -> None:
        """Points, headline values, progress."""
        self._points.append(MetricPoint(event.step, event.t, event.values))
        self.attempt.last_step = max(self.attempt.last_step, event.step)
        self._hint("metric", step=event.step, stage=event.stage)
        if not self.is_current:
            return
        self.run.step = max(self.run.step, event.step)
        self.run.stage = event.stage
        self.run.latest = {**self.run.latest, **_headline(event.values)}
        self._pace = pace.advance(self._pace, event.t, event.step)
        self.run.eta_s = pace.eta_s(self._pace, self.spec, self.run.step)
        self._hint_table()

    def _on_rollouts(self, event: ev.RolloutsWritten) -> None:
        """The new slice of a rollout file."""
        groups, problem = read_groups(self.run.run_dir, event)
        if groups:
            rollouts.add_groups(self.run.pk, self.attempt.number, groups)
        if problem:
            self._note(event, "rollouts_unreadable", problem)
        self._hint("sample", step=event.step, groups=event.groups, kind=event.rollout_kind)

    def _on_evaluation(self, event: ev.EvaluationFinished) -> None:
        """A held-out result."""
        evaluations.add_evaluation(self.run.pk, self.attempt.number, event)
        self._hint("evaluation", step=event.step, label=event.label, title=event.title)

    def _on_checkpoint(self, event: ev.CheckpointSaved) -> None:
        """A saved state, and those that the retention rule removed for it."""
        checkpoints.add_checkpoint(self.attempt, event)
        self._hint("checkpoint", step=event.step)

    def _on_control(self, event: ev.ControlApplied) -> None:
        """A wish came true."""
        with suppress(ValueError):  # a signal is a command too, without a row
            ControlRequest.objects.filter(run=self.run, pk=UUID(event.control_id)).update(
                applied_at=datetime.fromtimestamp(event.t, UTC), result=clean_text(event.result)
            )
        self._hint("notice", code="control", message=clean_text(event.result))

    def _on_notice(self, event: ev.Notice) -> None:
        """Something a person should know."""
        self._note(event, event.code, event.message, event.level)

    def _on_attempt_finished(self, event: ev.AttemptFinished) -> None:
        """How the trainer says it ended; the run's state follows when the process is gone."""
        self.attempt.outcome = event.outcome
        self.attempt.cause = clean_text(event.cause, 60)
        self.attempt.message = clean_text(event.message)
        self.attempt.advice = clean_text(event.advice)
        self.attempt.retryable = event.retryable
        self.attempt.last_step = max(self.attempt.last_step, event.step)

    def _note(self, event: ev.Event, code: str, message: str, level: str = "warning") -> None:
        """A notice that an event gives rise to."""
        add_notice(
            self.attempt,
            seq=event.seq,
            step=getattr(event, "step", self.attempt.last_step),
            level=level,
            code=code,
            message=message,
            t=event.t,
        )
        self._hint("notice", level=level, code=code, message=clean_text(message, 500))

    def _refresh_latest(self) -> None:
        """Headline values as of the starting point: those beyond it are superseded."""
        latest: dict[str, float | str] = {}
        for name in self.run.latest:
            series = read_series(self.run.pk, name)
            if series:
                latest |= _headline({name: series[-1][1]})
        self.run.latest = latest


def _gone(names: list[str], step: int) -> str:
    """Why an attempt starts before what was saved."""
    are = "is" if len(names) == 1 else "are"
    instead = f"goes on from step {step}" if step else "begins again from step 0"
    return f"{', '.join(names)} {are} gone from the run's directory; the run {instead}."


def _headline(values: dict[str, float]) -> dict[str, float | str]:
    """The headline metrics among the values, safe for JSON."""
    chosen = {}
    for name, value in values.items():
        metric = find_metric(name)
        if metric is not None and metric.headline:
            is_finite = value == value and abs(value) != float("inf")
            chosen[name] = value if is_finite else number_word(value)
    return chosen
