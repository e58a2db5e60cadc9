"""From a run directory to a session: open everything, resume from the newest whole checkpoint.

Called by `workers.trainer_main`; a step under glass opens its policy here too.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from pathlib import Path

import accelerate
import torch
import transformers
from accelerate import Accelerator

from training_core.algorithms.learner import Learner
from training_core.checkpoints import (
    CheckpointStore,
    Resumable,
    load_optimiser,
    load_reference,
)
from training_core.contract.events import AttemptStarted, Notice
from training_core.contract.rundir import OPTIMISER, REFERENCE, RunDir
from training_core.contract.spec import ResourceSpec, RunSpec
from training_core.curriculum.mix import MixState
from training_core.domains.sources import open_domain
from training_core.evaluate import Evaluator
from training_core.models.attention import use_short_row_attention
from training_core.models.device import (
    SMALLEST_BFLOAT16_MODEL,
    ComputePlan,
    apply_plan,
    plan_compute,
)
from training_core.models.hub import FetchProgress
from training_core.models.loading import load_directory, load_model, make_policy
from training_core.models.policy import Policy
from training_core.monitors.jsonl import EventLog
from training_core.monitors.phase import PhaseReporter
from training_core.monitors.steering import Steering
from training_core.program import PlannedStage
from training_core.rollouts.seeds import stream_seed
from training_core.session import Session
from training_core.state import RunState

BYTES_OF_UNIT = 1_000_000


def open_session(
    spec: RunSpec,
    run_dir: RunDir,
    log: EventLog,
    steering: Steering,
    *,
    attempt: int,
    token: int,
    models_dir: Path,
) -> Session:
    """Open model, domains and checkpoints. Raises a TrainingFailure that says what to do."""
    sources = {d.name: open_domain(d, run_dir, spec.seed) for d in spec.domains}
    held_out = {name: source.held_out() for name, source in sources.items()}
    store = CheckpointStore(run_dir, attempt=attempt, token=token)
    damaged: list[tuple[Path, str]] = []
    found = store.find_newest(lambda path, reason: damaged.append((path, reason)))
    _report_damage(log, damaged, found)
    policy, plan = open_policy(
        spec.model.ref,
        spec.resources,
        models_dir,
        found.path if found else None,
        fetched=_fetch_reporter(log),
    )
    state = found.state if found else _fresh_state(spec)
    accelerator = build_accelerator(plan)
    session = Session(
        spec=spec,
        run_dir=run_dir,
        attempt=attempt,
        policy=policy,
        learner=Learner(policy, accelerator, state.micro_batch_tokens, _no_progress),
        sources=sources,
        evaluator=Evaluator(spec, held_out),
        store=store,
        log=log,
        steering=steering,
        state=state,
    )
    if found:
        session.restore_optimiser = lambda stage, optimiser: _restore(
            found, policy, stage, optimiser
        )
        if found.state.reference_step is not None:
            session.load_reference = lambda: _open_reference(found, policy, models_dir)
    _announce(session, plan, found)
    return session


def open_policy(
    ref: str,
    resources: ResourceSpec,
    models_dir: Path,
    checkpoint: Path | None,
    *,
    fetched: FetchProgress = lambda _done, _total: None,
) -> tuple[Policy, ComputePlan]:
    """The policy on its device, with the weights of the checkpoint if there is one.

    Called by a session, and for a step under glass. `fetched` hears of the bytes of a model that
    comes from the hub. Raises BadModel or NoDevice.
    """
    loaded = (
        load_directory(checkpoint)
        if checkpoint
        else load_model(ref, models_dir=models_dir, fetched=fetched)
    )
    parameters = sum(weight.numel() for weight in loaded.model.parameters())
    plan = plan_compute(resources, parameters)
    apply_plan(plan)
    policy = make_policy(ref, loaded, device=plan.device)
    if plan.device.type == "cpu" and parameters >= SMALLEST_BFLOAT16_MODEL:
        use_short_row_attention(policy.model)
    policy.use_sampler_dtype(plan.dtype)
    policy.use_lanes(plan.lanes, plan.threads // plan.lanes)
    return policy, plan


def build_accelerator(plan: ComputePlan) -> Accelerator:
    """What casts matrix products and joins processes, for a plan."""
    return Accelerator(
        cpu=plan.device.type == "cpu",
        mixed_precision="bf16" if plan.dtype == torch.bfloat16 else "no",
    )


def _fresh_state(spec: RunSpec) -> RunState:
    return RunState(
        mix=MixState(seed=stream_seed(spec.seed, "mix")),
        micro_batch_tokens=spec.resources.micro_batch_tokens,
    )


def _restore(
    found: Resumable, policy: Policy, stage: PlannedStage, optimiser: torch.optim.Optimizer
) -> None:
    """Fill the optimiser where the checkpoint lies inside this stage; a new stage starts fresh."""
    if found.state.step > stage.before and (found.path / OPTIMISER).is_file():
        load_optimiser(found.path, policy, optimiser)


def _open_reference(found: Resumable, policy: Policy, models_dir: Path) -> Policy:
    """The reference of a resumed stage: the base model, or what the checkpoint keeps of it."""
    reference = policy.frozen_copy()
    if (found.path / REFERENCE).is_file():
        load_reference(found.path, reference)
        return reference
    base = dict(load_model(policy.facts.ref, models_dir=models_dir).model.named_parameters())
    for name, weight in reference.model.named_parameters():
        weight.data.copy_(base[name])
    return reference


def _announce(session: Session, plan: ComputePlan, found: Resumable | None) -> None:
    session.log.emit(
        AttemptStarted,
        attempt=session.attempt,
        start_step=session.state.step,
        checkpoint=str(found.path.relative_to(session.run_dir.root)) if found else None,
        total_steps=session.spec.total_steps,
        pid=os.getpid(),
        device=plan.device_words,
        compute_dtype=plan.dtype_name,
        threads=plan.threads,
        parameters=session.policy.facts.parameters,
        versions={
            "python": platform.python_version(),
            "torch": torch.__version__,
            "transformers": transformers.__version__,
            "accelerate": accelerate.__version__,
        },
    )


def _report_damage(
    log: EventLog, damaged: Sequence[tuple[Path, str]], found: Resumable | None
) -> None:
    """Say of each checkpoint that is not whole what is used instead."""
    instead = f"{found.path.name} is used" if found else "the run begins again from step 0"
    for path, reason in damaged:
        log.emit(
            Notice,
            step=found.state.step if found else 0,
            level="warning",
            code="checkpoint_damaged",
            message=f"{path.name} is not whole ({reason}); {instead}.",
        )


def _fetch_reporter(log: EventLog) -> FetchProgress:
    """Bytes that come from the hub, as progress of the load phase in megabytes."""
    reporter: PhaseReporter | None = None

    def tell(done: int, total: int) -> None:
        nonlocal reporter
        size = -(-total // BYTES_OF_UNIT)
        if reporter is None:
            reporter = PhaseReporter(log, "load", step=0, stage="", total=size, unit="MB")
        reporter.update(done // BYTES_OF_UNIT, total=size)

    return tell


def _no_progress(done: int, total: int, *, may_abandon: bool) -> None:
    """Nobody listens before the first step."""
