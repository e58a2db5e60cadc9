"""Where a run computes follows from spec and machine, never from a timing."""

from __future__ import annotations

import pytest
import torch

from training_core.contract.spec import ResourceSpec
from training_core.models import device
from training_core.models.device import NoDevice, plan_compute

TINY, SMALL, LARGE = 1_000_000, 135_000_000, 7_000_000_000


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


def test_a_gpu_that_is_not_there_is_refused() -> None:
    with pytest.raises(NoDevice, match="has none") as caught:
        plan_compute(ResourceSpec(device="cuda"), SMALL)
    assert caught.value.cause == "no_device"
    assert "auto" in caught.value.advice


@pytest.mark.parametrize(
    ("parameters", "flags", "dtype"),
    [
        (SMALL, {"amx_bf16"}, torch.bfloat16),
        (SMALL, {"avx512_bf16"}, torch.bfloat16),
        (SMALL, {"avx2"}, torch.float32),
        (TINY, {"amx_bf16"}, torch.float32),
    ],
)
def test_bfloat16_where_the_processor_multiplies_it_faster(
    monkeypatch: pytest.MonkeyPatch, parameters: int, flags: set[str], dtype: torch.dtype
) -> None:
    monkeypatch.setattr(device, "_cpu_flags", lambda: flags)
    assert plan_compute(ResourceSpec(device="auto"), parameters).dtype == dtype


def test_what_the_spec_asks_for_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "_cpu_flags", lambda: {"amx_bf16"})
    plan = plan_compute(ResourceSpec(compute_dtype="float32", threads=3), SMALL)
    assert (plan.dtype, plan.threads) == (torch.float32, 3)
    assert plan.dtype_name == "float32"


def test_a_tiny_model_takes_one_thread() -> None:
    plan = plan_compute(ResourceSpec(threads=8), TINY)
    assert (plan.threads, plan.lanes) == (1, 1)
