"""A run that saves after every step, so that a step under glass can be held against each."""

from __future__ import annotations

import pytest

from tests.training_core.models.policies import one_thread, policy
from tests.training_core.trainer.runs import RL, SFT, new_run, run_here, small_spec
from training_core.contract.rundir import RunDir
from training_core.contract.spec import CheckpointSpec, EvaluationSpec
from training_core.contract.stages import GrpoSpec, OptimiserSpec

__all__ = ["finished", "one_thread", "policy"]

SETTINGS = OptimiserSpec(learning_rate=1e-3, max_grad_norm=0.05, weight_decay=0.01)
STAGE = RL.model_copy(
    update={
        "steps": 3,
        "prompts_per_step": 1,
        "group_size": 6,
        "algorithm": GrpoSpec(),
        "optimiser": SETTINGS,
    }
)


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    """Four steps of warm-up and three of rl; to be looked at, not changed."""
    spec = small_spec(
        stages=(SFT, STAGE),
        evaluation=EvaluationSpec(at_start=False, stage_end=False),
        checkpoint=CheckpointSpec(interval_steps=1, keep_last=20, keep_best=False),
    )
    run_dir = new_run(tmp_path_factory.mktemp("glass-run"), spec)
    ending = run_here(run_dir)
    assert (ending.outcome, ending.step) == ("succeeded", 7), ending
    return run_dir
