"""Models of every family are trained by the real trainer, killed, resumed exactly and exported."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

from tests.training_core.models.families import ENDS, FAMILIES, save_family
from tests.training_core.trainer.runs import (
    Trainer,
    assert_same_run,
    hold_at,
    live_events,
    new_run,
    of_kind,
    read_events,
    run_here,
    small_spec,
)
from training_core.contract.events import MetricsLogged, PhaseProgress
from training_core.contract.exports import ExportDir, ExportOrder
from training_core.contract.rundir import RunDir
from training_core.contract.spec import CheckpointSpec, EvaluationSpec, ModelSpec
from training_core.exports.folder import export_checkpoint
from training_core.models.loading import load_directory

KILLED_IN = 9
LAST = 12


def family_run(root: Path, model: Path) -> RunDir:
    """Four steps of SFT and eight of RL, saved every third."""
    spec = small_spec(
        model=ModelSpec(ref=str(model)),
        evaluation=EvaluationSpec(max_new_tokens=6, success_reward="length"),
        checkpoint=CheckpointSpec(interval_steps=3, keep_best=False),
    )
    return new_run(root, spec)


@pytest.mark.parametrize("family", FAMILIES)
def test_trained_killed_resumed_exported(family: str, tmp_path: Path) -> None:
    model = save_family(family, tmp_path / "model")
    killed = family_run(tmp_path / "killed", model)
    hold_at(killed, 1, KILLED_IN)
    trainer = Trainer(killed)
    whole = family_run(tmp_path / "whole", model)
    ending = run_here(whole)
    assert (ending.outcome, ending.step) == ("succeeded", LAST), ending
    trainer.wait_for(
        lambda event: (
            isinstance(event, PhaseProgress)
            and (event.step, event.phase, event.done > 0) == (KILLED_IN, "reward", True)
        )
    )
    os.kill(trainer.process.pid, signal.SIGKILL)
    trainer.wait()
    assert run_here(killed, 2).outcome == "succeeded"
    (start,) = of_kind(read_events(killed, 2), "attempt_started")
    assert start.start_step == 6
    assert_same_run(killed, whole)
    norms = [e.values["grad_norm"] for e in steps_of(whole)]
    assert len(norms) == LAST
    assert sum(norm > 0 for norm in norms) > LAST // 2  # a step of equal rewards has none
    export_equals_checkpoint(whole, tmp_path / "export")


def steps_of(run_dir: RunDir) -> list[MetricsLogged]:
    """The metrics of every optimiser step."""
    found: list[MetricsLogged] = of_kind(live_events(run_dir), "metrics")
    return [event for event in found if "grad_norm" in event.values]


def export_equals_checkpoint(run_dir: RunDir, root: Path) -> None:
    """Logits of the exported folder, as its user loads it, are the policy's; its ends are too."""
    folder = ExportDir(root)
    root.mkdir()
    shutil.copytree(run_dir.checkpoint(LAST), folder.source)
    folder.write_order(ExportOrder(dtype="float32"))
    result = export_checkpoint(folder, lambda _: None)
    assert result.outcome == "ready"
    assert result.check is not None
    policy = load_directory(run_dir.checkpoint(LAST)).model
    exported = AutoModelForCausalLM.from_pretrained(folder.model)
    assert result.parameters == sum(weight.numel() for weight in exported.parameters())
    ids = torch.arange(6, 56)[None]
    with torch.no_grad():
        assert torch.equal(exported(input_ids=ids).logits, policy.eval()(input_ids=ids).logits)
    assert exported.generation_config.eos_token_id == list(ENDS)
