"""Step boundaries: what happens between two steps, when the run is whole.

Called by `training_core.train` and `training_core.sft` after each step: metrics are logged, the
policy is evaluated and saved when it is due, commands and limits take effect.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping

from training_core.checkpoints import NoRoom, Retention
from training_core.contract.control import ControlCommand
from training_core.contract.events import (
    CheckpointSaved,
    ControlApplied,
    EvaluationFinished,
    EvaluationLabel,
    MetricsLogged,
    Notice,
)
from training_core.contract.stages import RlStage
from training_core.evaluate import EvaluationOutcome, evaluation_metrics
from training_core.failures import Diverged
from training_core.monitors.phase import phase
from training_core.monitors.rollout_files import write_groups
from training_core.program import PlannedStage, plan_stages
from training_core.session import Session
from training_core.state import BestEvaluation, PastEvaluation, RunState

MOST_SKIPPED_IN_A_ROW = 5


class BudgetSpent(Exception):
    """A limit of the spec is reached; carries the sentence that says which."""


def finish_step(
    session: Session, stage: PlannedStage, state: RunState, values: Mapping[str, float]
) -> None:
    """Make `state` the run's state, log the step, then do what is due at its boundary."""
    skipped_before = session.state.skipped_in_a_row
    session.state = state
    session.log.emit(
        MetricsLogged,
        step=state.step,
        stage=stage.spec.name,
        values=dict(values) | session.machine.read(),
    )
    if state.skipped_in_a_row and not skipped_before:
        _report_skipped(session)
    _report_memory(session)
    commands = session.steering.take()
    _evaluate_if_due(session, stage, commands)
    _save_if_due(session, stage, commands)
    for command in commands:
        session.log.emit(
            ControlApplied,
            step=state.step,
            control_id=command.id,
            command=command.command,
            result="done",
        )
    _check_divergence(session)
    _check_budget(session)
    session.steering.check()


def resume_boundary(session: Session) -> None:
    """Do at the boundary where an attempt resumes what the one before it may have abandoned there:
    the planned evaluation, the end at a limit."""
    state = session.state
    stage = next((s for s in plan_stages(session.spec) if state.step <= s.end), None)
    if stage is None:
        return
    session.stage_name = stage.spec.name
    due = _planned_evaluation(session, stage)
    if due and all(past.step != state.step for past in state.evaluations):
        evaluate(session, due[0], stage=stage.spec.name, title=due[1])
    _check_budget(session)


def evaluate(
    session: Session, label: EvaluationLabel, *, stage: str, title: str
) -> EvaluationOutcome:
    """Run a held-out evaluation, log it and remember it. May raise Interrupted."""
    state, step = session.state, session.state.step
    began = time.perf_counter()
    total = session.evaluator.rollouts
    with phase(
        session.log, "evaluate", step=step, stage=stage, total=total, unit="rollouts"
    ) as report:

        def on_progress(done: int, tokens: int) -> None:
            report.update(done, tokens=tokens)
            session.steering.check()

        outcome = session.evaluator.run(
            session.policy,
            name=f"e{len(state.evaluations):04d}",
            earlier=state.evaluations,
            on_progress=on_progress,
            on_groups=lambda groups: write_groups(
                session.run_dir,
                session.log,
                groups,
                attempt=session.attempt,
                step=step,
                stage=stage,
                kind="evaluate",
                passed=session.evaluator.passed,
            ),
        )
    seconds = time.perf_counter() - began
    _log_evaluation(session, outcome, label, stage=stage, title=title, seconds=seconds)
    _remember(session, outcome, label, title)
    return outcome


def save(session: Session, stage: str) -> bool:
    """Save the state; False when the disk has no room, which training survives."""
    state = session.state
    if session.store.has(state.step):
        return True
    if not session.policy.is_finite():
        raise Diverged(
            f"The weights after step {state.step} are not finite numbers and were not saved.",
            "Lower the learning rate, or go back to an earlier checkpoint.",
        )
    best = state.best
    with phase(
        session.log, "checkpoint", step=state.step, stage=stage, total=1, unit="checkpoints"
    ) as report:
        try:
            saved = session.store.save(
                session.policy,
                session.optimiser,
                state,
                reference=session.reference if state.reference_step else None,
                stage=stage,
                retention=Retention(
                    session.spec.checkpoint.keep_last,
                    best.step if best and session.spec.checkpoint.keep_best else None,
                ),
                progress=report.update,
            )
        except NoRoom as error:
            _report_no_room(session, str(error))
            return False
    session.unsaved_notice_given = False
    session.log.emit(
        CheckpointSaved,
        step=state.step,
        stage=stage,
        path=str(saved.path.relative_to(session.run_dir.root)),
        size_bytes=saved.size_bytes,
        is_best=best is not None and best.step == state.step,
        pass_at_1=next(
            (p.pass_at_1 for p in state.evaluations[::-1] if p.step == state.step), None
        ),
        removed=tuple(str(path.relative_to(session.run_dir.root)) for path in saved.removed),
    )
    return True


def _evaluate_if_due(session: Session, stage: PlannedStage, commands: list[ControlCommand]) -> None:
    """At most one evaluation at a boundary, under its weightiest label."""
    due = _planned_evaluation(session, stage)
    if due is None and any(command.command == "evaluate_now" for command in commands):
        due = "requested", f"step {session.state.step}, on request"
    if due is not None:
        evaluate(session, due[0], stage=stage.spec.name, title=due[1])


def _planned_evaluation(
    session: Session, stage: PlannedStage
) -> tuple[EvaluationLabel, str] | None:
    """Label and title of the evaluation that the spec plans at this boundary."""
    spec, step = session.spec.evaluation, session.state.step
    every = spec.interval_steps if isinstance(stage.spec, RlStage) else 0
    if step == session.spec.total_steps:
        return "final", "final"
    if step == stage.end and spec.stage_end:
        return "stage_end", f"after {stage.spec.name}"
    if every and (step - stage.before) % every == 0:
        return "interval", f"step {step}"
    return None


def _save_if_due(session: Session, stage: PlannedStage, commands: list[ControlCommand]) -> None:
    """On interval, at the end of a stage, on request, for new best weights, and after a failed
    attempt to save."""
    state, spec = session.state, session.spec.checkpoint
    best = state.best
    if (
        state.step % spec.interval_steps == 0
        or state.step == stage.end
        or any(command.command == "checkpoint_now" for command in commands)
        or (spec.keep_best and best is not None and best.step == state.step)
        or session.unsaved_notice_given
    ):
        save(session, stage.spec.name)


def _log_evaluation(
    session: Session,
    outcome: EvaluationOutcome,
    label: EvaluationLabel,
    *,
    stage: str,
    title: str,
    seconds: float,
) -> None:
    step = session.state.step
    session.log.emit(
        EvaluationFinished,
        step=step,
        stage=stage,
        label=label,
        title=title,
        recipe=session.evaluator.recipe,
        seconds=seconds,
        results=outcome.results,
    )
    session.log.emit(
        MetricsLogged,
        step=step,
        stage=stage,
        values=evaluation_metrics(outcome) | {"time/evaluate": seconds},
    )


def _remember(
    session: Session, outcome: EvaluationOutcome, label: EvaluationLabel, title: str
) -> None:
    """Keep the items for later comparisons, and the best result of trained weights."""
    state, overall = session.state, outcome.overall
    past = PastEvaluation(
        step=state.step,
        label=label,
        title=title,
        recipe=session.evaluator.recipe,
        passes=outcome.passes,
        pass_at_1=overall.pass_at_1.value,
        reward=overall.reward.value,
    )
    best = state.best
    measured = state.step > 0 and not math.isnan(past.pass_at_1)
    if measured and (best is None or _merit(past) > (best.pass_at_1, best.reward)):
        best = BestEvaluation(step=state.step, pass_at_1=past.pass_at_1, reward=past.reward)
    session.state = state.model_copy(
        update={"evaluations": (*state.evaluations, past), "best": best}
    )


def _merit(past: PastEvaluation) -> tuple[float, float]:
    """What makes an evaluation better."""
    return past.pass_at_1, past.reward


def _report_memory(session: Session) -> None:
    """Say once that micro-batches had to shrink."""
    for budget in session.learner.halvings:
        session.log.emit(
            Notice,
            step=session.state.step,
            level="warning",
            code="micro_batch_halved",
            message=f"Memory ran out, so micro-batches hold {budget:,} tokens at most from here"
            " on. Results stay the same; lower resources.micro_batch_tokens to begin there.",
        )
    session.learner.halvings.clear()


def _report_skipped(session: Session) -> None:
    """Say at the first of a row of updates that were left out."""
    session.log.emit(
        Notice,
        step=session.state.step,
        level="alarm",
        code="update_skipped",
        message="The loss or its gradient was not a finite number, so the weights were left as"
        f" they are. After {MOST_SKIPPED_IN_A_ROW} such updates in a row the run ends. If it comes"
        " again, lower the learning rate.",
    )


def _report_no_room(session: Session, reason: str) -> None:
    """Say once that the run goes on unsaved; it is tried again after each step."""
    if session.unsaved_notice_given:
        return
    session.unsaved_notice_given = True
    session.log.emit(
        Notice,
        step=session.state.step,
        level="alarm",
        code="disk_full",
        message=f"No checkpoint could be written: {reason} Training goes on and saving is tried"
        " again after each step. Free disk space, or remove old runs.",
    )


def _check_divergence(session: Session) -> None:
    """Give up after too many updates in a row that were not finite."""
    skipped = session.state.skipped_in_a_row
    if skipped >= MOST_SKIPPED_IN_A_ROW:
        raise Diverged(
            f"The last {skipped} updates had a loss or gradient that is not a finite number.",
            "Lower the learning rate, or go back to an earlier checkpoint.",
        )


def _check_budget(session: Session) -> None:
    """Raise BudgetSpent when a limit is reached before the program's end."""
    budget, state = session.spec.budget, session.state
    if state.step >= session.spec.total_steps:
        return
    if budget.max_minutes is not None and state.trained_s >= budget.max_minutes * 60:
        raise BudgetSpent(f"The limit of {budget.max_minutes:g} minutes of training is reached.")
    if budget.max_tokens is not None and state.num_tokens >= budget.max_tokens:
        raise BudgetSpent(f"The limit of {budget.max_tokens:,} sampled tokens is reached.")
