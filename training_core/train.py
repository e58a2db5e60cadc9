"""The loop: read this first. A run is a program of stages; a step of rl has six parts.

`train` is called by `workers.trainer_main` with a session; everything that a step needs is in
there, and everything that happens between two steps is in `training_core.boundary`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from training_core.algorithms.update import UpdateResult, UpdateSettings, update_policy
from training_core.boundary import BudgetSpent, evaluate, finish_step, resume_boundary, save
from training_core.contract.events import StageStarted
from training_core.contract.stages import RlStage, SftStage
from training_core.failures import DiskFull
from training_core.gather import Gathered, gather_groups
from training_core.judge import Verdict, judge_groups
from training_core.losses.divergence import adapted_coefficient
from training_core.models.optimiser import set_learning_rate
from training_core.monitors.phase import phase
from training_core.monitors.rollout_files import write_groups
from training_core.monitors.step_metrics import rollout_metrics
from training_core.program import PlannedStage, stages_left
from training_core.rollouts.seeds import stream_seed
from training_core.session import Session, Stopwatch
from training_core.sft import run_sft_stage
from training_core.state import RunState
from training_core.types import RolloutGroup


@dataclass(frozen=True)
class Completed:
    """Why the program ended by itself."""

    cause: str
    message: str


def train(session: Session) -> Completed:
    """Walk the program from the session's state to its end.

    Raises Interrupted or a TrainingFailure; `session.state` is then the last whole step.
    """
    completed = Completed("done", "All stages are finished.")
    try:
        run_program(session)
    except BudgetSpent as limit:
        evaluate(session, "final", stage=session.stage_name, title="final")
        completed = Completed("budget", str(limit))
    if not save(session, session.stage_name):
        raise DiskFull(
            "Training is done, but the disk has no room for the trained weights.",
            "Free disk space, then resume the run: it goes on from its last checkpoint.",
        )
    return completed


def run_program(session: Session) -> None:
    """The base model's evaluation, then stage after stage."""
    spec = session.spec
    if session.state.step > 0:
        resume_boundary(session)
    elif spec.evaluation.at_start:
        evaluate(session, "start", stage="", title="base model")
    for stage in stages_left(spec, session.state.step):
        session.log.emit(
            StageStarted, step=session.state.step, stage=stage.spec.name, index=stage.index
        )
        if isinstance(stage.spec, SftStage):
            run_sft_stage(session, stage, stage.spec)
        else:
            run_rl_stage(session, stage, stage.spec)


def run_rl_stage(session: Session, stage: PlannedStage, spec: RlStage) -> None:
    """Sample groups, score them, follow the advantage; once for each step that is left."""
    optimiser = session.open_stage(stage)
    for step in stage.steps_after(session.state.step):
        watch = Stopwatch()

        # 1. to 3. Draw prompts, sample groups of rollouts, score them.
        gathered = gather_groups(session, spec, step, watch)

        # 4. Advantages, and what policy and reference say of the tokens.
        with phase(
            session.log, "update", step=step, stage=spec.name, total=0, unit="micro-batches"
        ) as report:
            session.learner.progress = session.update_progress(report)
            verdict = judge_groups(session, spec, step, gathered.used, gathered.stale)
            watch.lap("judge")
            record(session, spec, step, [*verdict.groups, *gathered.dead])

            # 5. Loss, gradient, optimiser step.
            set_learning_rate(optimiser, stage.learning_rate(step))
            settings = update_settings(session, spec, step, verdict.coefficient)
            result = update_policy(session.learner, optimiser, verdict.rows, settings)
        watch.lap("update")

        # 6. Log, evaluate, save, obey.
        state = next_state(session, stage, spec, step, gathered, verdict, result, watch.total())
        values = {
            **step_metrics(session, verdict, gathered),
            **result.metrics,
            **step_values(stage, step, state, gathered, verdict, watch),
        }
        finish_step(session, stage, state, values)


def update_settings(
    session: Session, spec: RlStage, step: int, coefficient: float
) -> UpdateSettings:
    """What the update of a step needs to know."""
    return UpdateSettings(
        algorithm=spec.algorithm,
        temperature=spec.sampling.temperature,
        longest=spec.sampling.max_new_tokens,
        max_grad_norm=spec.optimiser.max_grad_norm,
        coefficient=coefficient,
        seed=stream_seed(session.spec.seed, "windows", step),
    )


def record(session: Session, spec: RlStage, step: int, groups: Sequence[RolloutGroup]) -> None:
    """Store the rollouts of the step, whole."""
    write_groups(
        session.run_dir,
        session.log,
        groups,
        attempt=session.attempt,
        step=step,
        stage=spec.name,
        kind="train",
        passed=session.evaluator.passed,
    )


def next_state(
    session: Session,
    stage: PlannedStage,
    spec: RlStage,
    step: int,
    gathered: Gathered,
    verdict: Verdict,
    result: UpdateResult,
    seconds: float,
) -> RunState:
    """The run's state after a step. What a stage has adapted and carried ends with it."""
    state, is_last = session.state, step == stage.end
    return state.model_copy(
        update={
            "step": step,
            "mix": gathered.mix,
            "num_tokens": state.num_tokens + gathered.sampled_tokens,
            "num_prompts": state.num_prompts + gathered.sampled,
            "trained_s": state.trained_s + seconds,
            "skipped_in_a_row": state.skipped_in_a_row + result.skipped if result.skipped else 0,
            "micro_batch_tokens": session.learner.micro_batch_tokens,
            "carried": () if is_last else gathered.carried,
            "reference_step": None if is_last else state.reference_step,
            "divergence_coefficient": None if is_last else adapted(session, spec, verdict),
        }
    )


def adapted(session: Session, spec: RlStage, verdict: Verdict) -> float | None:
    """Weight of the divergence for the next step; None while it is the spec's."""
    settings = spec.algorithm.divergence
    if settings.target_nats is None or verdict.divergence_nats is None:
        return session.state.divergence_coefficient
    return adapted_coefficient(
        session.divergence_coefficient(settings),
        measured=verdict.divergence_nats,
        target=settings.target_nats,
        rollouts=len(verdict.rows),
        horizon=settings.horizon_rollouts,
    )


def step_values(
    stage: PlannedStage,
    step: int,
    state: RunState,
    gathered: Gathered,
    verdict: Verdict,
    watch: Stopwatch,
) -> dict[str, float]:
    """Counters and speeds of a step."""
    trained = sum(
        len(row.sequence.prompt_ids) + len(row.sequence.completion_ids) for row in verdict.rows
    )
    return {
        **watch.values,
        "learning_rate": stage.learning_rate(step),
        "num_tokens": float(state.num_tokens),
        "num_prompts": float(state.num_prompts),
        "perf/train_tokens_per_s": trained / watch.values["time/update"],
        **gathered.speed(watch),
    }


def step_metrics(session: Session, verdict: Verdict, gathered: Gathered) -> dict[str, float]:
    """What the step's rollouts were like, those that were left out included."""
    groups = [*verdict.groups, *gathered.dead]
    return {
        **rollout_metrics(groups, session.evaluator.passed),
        **verdict.metrics(),
        **gathered.metrics(),
    }
