"""Fixtures of this folder: one run that nobody disturbs, for all tests that only look."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.training_core.models.policies import one_thread, policy
from tests.training_core.trainer.runs import new_run, run_here
from training_core.contract.rundir import RunDir

__all__ = ["copy_of_whole", "one_thread", "policy", "whole"]


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    """12 steps in one go, in this process; to be looked at, not changed."""
    run_dir = new_run(tmp_path_factory.mktemp("whole"))
    ending = run_here(run_dir)
    assert (ending.outcome, ending.cause, ending.step) == ("succeeded", "done", 12), ending
    return run_dir


@pytest.fixture
def copy_of_whole(whole: RunDir, tmp_path: Path) -> RunDir:
    """The finished run, to be spoilt."""
    return RunDir(shutil.copytree(whole.root, tmp_path / "copy"))
