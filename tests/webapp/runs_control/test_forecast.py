"""What a spec will sample and keep, before it runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from training_core.contract.algorithms import DapoSpec, DivergenceSpec, GrpoSpec
from training_core.contract.rundir import BESIDE_MODEL
from training_core.contract.spec import RunSpec
from training_core.contract.stages import RlStage
from webapp.runs import disk
from webapp.runs.forecast import forecast

pytestmark = pytest.mark.django_db


def with_algorithm(spec: RunSpec, **fields: Any) -> RunSpec:
    warm_up, rl = spec.stages
    return spec.model_copy(update={"stages": (warm_up, rl.model_copy(update=fields))})


def test_dynamic_sampling_may_sample_more(spec: RunSpec) -> None:
    plain = forecast(with_algorithm(spec, algorithm=GrpoSpec()))
    dynamic = forecast(with_algorithm(spec, algorithm=DapoSpec(most_sampling_rounds=3)))
    assert dynamic.rollouts == plain.rollouts
    assert dynamic.most_tokens == 3 * plain.most_tokens
    (warning,) = set(dynamic.warnings) - set(plain.warnings)
    assert "up to 3 times as much" in warning


def test_a_reference_is_kept_once_for_its_stage(spec: RunSpec) -> None:
    pulled = GrpoSpec(divergence=DivergenceSpec(coefficient=0.1))
    plain = disk.needed_bytes(spec)
    parameters = disk.parameters_of(spec.model.ref)
    assert disk.needed_bytes(with_algorithm(spec, algorithm=pulled)) == plain + 4 * parameters


def test_the_base_model_is_no_reference_of_its_own(spec: RunSpec) -> None:
    stage = RlStage(algorithm=GrpoSpec(divergence=DivergenceSpec(coefficient=0.1)))
    alone = spec.model_copy(update={"stages": (stage,)})
    assert disk.references_kept(alone) == 0


def test_a_file_with_two_names_is_counted_once(spec: RunSpec, tmp_path: Path) -> None:
    needed = disk.needed_bytes(spec)
    for step in (1, 2):
        (tmp_path / "checkpoints" / f"step-{step}").mkdir(parents=True)
    first = tmp_path / "checkpoints" / "step-1" / "reference.safetensors"
    first.write_bytes(b"x" * 1000)
    os.link(first, tmp_path / "checkpoints" / "step-2" / first.name)
    assert disk._used_by(tmp_path) == 1000
    assert needed > 1000


def test_what_lies_beside_weights_is_not_counted_as_weights(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"architectures": ["LlamaForCausalLM"]}')
    (tmp_path / "model.safetensors").write_bytes(b"x" * 2000)
    alone = disk.parameters_of(str(tmp_path))
    for name in BESIDE_MODEL:
        (tmp_path / name).write_bytes(b"x" * 9000)
    assert disk.parameters_of(str(tmp_path)) == alone
