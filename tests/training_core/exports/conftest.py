"""A checkpoint of a trained policy, held in the directory of an export."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.training_core.models.policies import build_policy, one_thread
from tests.training_core.trainer.runs import new_run
from training_core.checkpoints import CheckpointStore, Retention
from training_core.contract.exports import ExportDir
from training_core.curriculum.mix import MixState
from training_core.models.policy import Policy
from training_core.state import RunState

__all__ = ["one_thread"]


@pytest.fixture(scope="session")
def trained() -> Policy:
    """A lively policy; to be looked at."""
    return build_policy()


@pytest.fixture(scope="session")
def saved(trained: Policy, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its checkpoint after step 5; to be looked at."""
    run_dir = new_run(tmp_path_factory.mktemp("run"))
    run_dir.write_owner(1, 7)
    state = RunState(step=5, mix=MixState(seed=1), micro_batch_tokens=100)
    retention = Retention(keep_last=1, best_step=None)
    store = CheckpointStore(run_dir, attempt=1, token=7)
    return store.save(
        trained, None, state, stage="rl", retention=retention, progress=lambda _: None
    ).path


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> ExportDir:
    """An export's directory with a copy of the checkpoint that a test may spoil."""
    folder = ExportDir(tmp_path / "export")
    folder.root.mkdir()
    shutil.copytree(saved, folder.source)
    (folder.source / "state.json").unlink()
    return folder
