"""The loop: read this first. A run is a program of stages; a step of rl has six parts.

`train` is called by `workers.trainer_main` with a session; everything that a step needs is in
there, and everything that happens between two steps is in `training_core.boundary`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from training_core.algorithms.select import select_algorithm
from training_core.algorithms.update import UpdateResult, UpdateSettings, update_policy
from training_core.boundary import BudgetSpent, evaluate, finish_step, resume_boundary, save
from training_core.contract.events import StageStarted
from training_core.contract.stages import RlStage, SftStage
from training_core.curriculum.mix import MixState, next_prompts
from training_core.domains.item import PromptItem
from training_core.failures import DiskFull
from training_core.models.optimiser import set_learning_rate
from training_core.monitors.phase import phase
from training_core.monitors.rollout_files import write_groups
from training_core.monitors.step_metrics import rollout_metrics
from training_core.program import PlannedStage, stages_left
from training_core.rollouts.collect import PromptRequest, collect_groups, score_groups
from training_core.rollouts.engine import GenerationSettings, rows_that_fit
from training_core.rollouts.seeds import stream_seed
from training_core.session import Session, Stopwatch
from training_core.sft import run_sft_stage
from training_core.state import RunState
from training_core.types import PolicyBatch, RolloutGroup

MOST_ROWS_CPU, MOST_ROWS_GPU = 96, 512
KV_BYTES_CPU, KV_BYTES_GPU = 2 << 30, 8 << 30


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
    algorithm = select_algorithm(spec.algorithm)
    optimiser = session.open_optimiser(stage)
    update = UpdateSettings(
        spec.sampling.temperature, spec.optimiser.max_grad_norm, spec.algorithm.inner_epochs
    )
    for step in stage.steps_after(session.state.step):
        watch = Stopwatch()

        # 1. Sample prompts.
        mix, items = draw_prompts(session, spec.prompts_per_step)

        # 2. Collect groups of rollouts.
        groups = collect(session, spec, step, items)
        watch.lap("rollout")

        # 3. Score them.
        groups = score(session, spec, step, groups)
        watch.lap("reward")

        # 4. Advantages.
        groups = algorithm.assign_advantages(groups, training_rewards(session, spec, step, groups))
        batch = algorithm.build_batch(groups)
        record(session, spec, step, groups)

        # 5. Loss, gradient, optimiser step.
        set_learning_rate(optimiser, stage.learning_rate(step))
        with phase(
            session.log, "update", step=step, stage=spec.name, total=0, unit="micro-batches"
        ) as report:
            session.learner.progress = session.update_progress(report)
            result = update_policy(session.learner, optimiser, algorithm, batch, update)
        watch.lap("update")

        # 6. Log, evaluate, save, obey.
        state = next_state(session, step, mix, groups, result, watch.total())
        values = step_values(stage, step, state, groups, batch, result, watch)
        finish_step(session, stage, state, values)


def draw_prompts(session: Session, n: int) -> tuple[MixState, list[PromptItem]]:
    """The next n prompts of the mix, and the mix's state after them."""
    mix, picks = next_prompts(session.state.mix, session.spec.domains, n)
    return mix, [session.sources[pick.domain].prompt(pick.prompt_index) for pick in picks]


def collect(
    session: Session, spec: RlStage, step: int, items: Sequence[PromptItem]
) -> list[RolloutGroup]:
    """One group for each prompt. May raise Interrupted between two tokens."""
    prompts = [
        PromptRequest(
            f"t{step:06d}-{place:05d}",
            item,
            tuple(
                stream_seed(session.spec.seed, "rollout", step, place, index)
                for index in range(spec.group_size)
            ),
        )
        for place, item in enumerate(items)
    ]
    total = len(items) * spec.group_size
    with phase(
        session.log, "rollout", step=step, stage=spec.name, total=total, unit="rollouts"
    ) as report:

        def on_progress(done: int, tokens: int) -> None:
            report.update(done, tokens=tokens)
            session.steering.check()

        return collect_groups(
            session.policy, prompts, generation_settings(session, spec), on_progress
        )


def generation_settings(session: Session, spec: RlStage) -> GenerationSettings:
    """As many rows at once as memory holds in the worst case."""
    policy = session.policy
    cuda = policy.device.type == "cuda"
    rows = rows_that_fit(
        policy.model.config,
        tokens=min(policy.facts.context_tokens, 1024 + spec.sampling.max_new_tokens),
        memory_bytes=KV_BYTES_GPU if cuda else KV_BYTES_CPU,
        dtype_bytes=4,
    )
    return GenerationSettings(
        spec.sampling.max_new_tokens,
        spec.sampling.temperature,
        min(rows, MOST_ROWS_GPU if cuda else MOST_ROWS_CPU),
    )


def score(
    session: Session, spec: RlStage, step: int, groups: list[RolloutGroup]
) -> list[RolloutGroup]:
    """The groups with their rewards."""
    total = sum(len(group.rollouts) for group in groups)
    with phase(
        session.log, "reward", step=step, stage=spec.name, total=total, unit="rollouts"
    ) as report:
        return score_groups(session.spec.reward, groups, report.update)


def training_rewards(
    session: Session, spec: RlStage, step: int, groups: Sequence[RolloutGroup]
) -> list[float | None]:
    """Rewards in the groups' order; for the control experiment, dealt out at random.

    Unscored rollouts stay unscored: only the scores change places.
    """
    rewards = [rollout.reward for group in groups for rollout in group.rollouts]
    if not spec.shuffle_rewards:
        return rewards
    scores = [reward for reward in rewards if reward is not None]
    Random(stream_seed(session.spec.seed, "shuffle", step)).shuffle(scores)
    return [None if reward is None else scores.pop() for reward in rewards]


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
    step: int,
    mix: MixState,
    groups: Sequence[RolloutGroup],
    result: UpdateResult,
    seconds: float,
) -> RunState:
    """The run's state after a step."""
    state = session.state
    tokens = sum(rollout.tokens for group in groups for rollout in group.rollouts)
    return state.model_copy(
        update={
            "step": step,
            "mix": mix,
            "num_tokens": state.num_tokens + tokens,
            "num_prompts": state.num_prompts + len(groups),
            "trained_s": state.trained_s + seconds,
            "skipped_in_a_row": state.skipped_in_a_row + result.skipped if result.skipped else 0,
            "micro_batch_tokens": session.learner.micro_batch_tokens,
        }
    )


def step_values(
    stage: PlannedStage,
    step: int,
    state: RunState,
    groups: Sequence[RolloutGroup],
    batch: PolicyBatch,
    result: UpdateResult,
    watch: Stopwatch,
) -> dict[str, float]:
    """All metrics of a step."""
    tokens = sum(rollout.tokens for group in groups for rollout in group.rollouts)
    trained = sum(len(s.prompt_ids) + len(s.completion_ids) for s in batch.sequences)
    return {
        **rollout_metrics(groups),
        **result.metrics,
        **watch.values,
        "learning_rate": stage.learning_rate(step),
        "num_tokens": float(state.num_tokens),
        "num_prompts": float(state.num_prompts),
        "perf/rollout_tokens_per_s": tokens / watch.values["time/rollout"],
        "perf/train_tokens_per_s": trained / watch.values["time/update"],
    }
