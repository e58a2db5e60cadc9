"""A run by hub id: fetched by the real trainer, then run again without the hub."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.training_core.models.families import build_family, save_family
from tests.training_core.models.hub_server import Hub, Repository
from tests.training_core.trainer.runs import (
    SFT,
    Trainer,
    evaluation_rows,
    final_files,
    metric_rows,
    new_run,
    of_kind,
    read_events,
    small_spec,
)
from training_core.contract.rundir import RunDir
from training_core.contract.spec import EvaluationSpec, ModelSpec


def hub_run(root: Path) -> RunDir:
    return new_run(
        root,
        small_spec(
            model=ModelSpec(ref="org/qwen3"),
            stages=(SFT,),
            evaluation=EvaluationSpec(max_new_tokens=6, success_reward="length"),
        ),
    )


def test_a_run_on_a_model_of_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = Repository.of(save_family("qwen3", tmp_path / "model"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    for name in ("HF_TOKEN", "HF_HUB_CACHE", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    with Hub({"org/qwen3": repository}) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        first = hub_run(tmp_path / "first")
        trainer = Trainer(first)
        assert trainer.wait() == 0, first.console_file(1).read_text()[-3000:]
    second = hub_run(tmp_path / "second")
    assert Trainer(second).wait() == 0
    (started,) = of_kind(read_events(first), "attempt_started")
    parameters = sum(weight.numel() for weight in build_family("qwen3").model.parameters())
    assert started.parameters == parameters
    assert_same_run_of_four(first, second)


def assert_same_run_of_four(first: RunDir, second: RunDir) -> None:
    """Metrics and evaluations; the weights are those of step 4."""
    assert metric_rows(first) == metric_rows(second)
    assert evaluation_rows(first) == evaluation_rows(second)
    assert final_files(first, 4) == final_files(second, 4)
