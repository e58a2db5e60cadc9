"""Where and in which type a run computes; decided once, from the spec and the machine alone.

Called by `workers.trainer_main`. The choice never depends on a timing, so a resumed attempt on the
same machine computes in the same way.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import torch

from training_core.contract.spec import ResourceSpec
from training_core.failures import TrainingFailure
from training_core.models.processor import cpu_line

SMALLEST_BFLOAT16_MODEL = 20_000_000
"""Parameters below which neither bfloat16 nor a second thread gains anything on a processor."""


class NoDevice(TrainingFailure):
    """The spec asks for a device that this machine has not got."""

    cause = "no_device"


MOST_LANES = 4
"""Each lane has gradients of its own in memory."""
LARGEST_LANE_MODEL = 1_000_000_000
"""Parameters above which a processor's kernels are long enough to be split over threads."""


@dataclass(frozen=True)
class ComputePlan:
    """Device, type of matrix products and threads of this process."""

    device: torch.device
    dtype: torch.dtype
    threads: int
    lanes: int
    """Parts of a batch that are computed side by side (`models.lanes`); they share the threads."""

    @property
    def device_words(self) -> str:
        """The device for people."""
        if self.device.type == "cuda":
            return str(torch.cuda.get_device_name(self.device))
        return f"CPU ({_processor_name()})"

    @property
    def dtype_name(self) -> str:
        """`float32` or `bfloat16`."""
        return str(self.dtype).removeprefix("torch.")


def plan_compute(spec: ResourceSpec, parameters: int) -> ComputePlan:
    """Choose device and type for a model of that many parameters. Raises NoDevice."""
    cuda = torch.cuda.is_available()
    if spec.device == "cuda" and not cuda:
        raise NoDevice(
            "The run asks for a GPU, but this worker has none.",
            "Set resources.device to auto, or start a worker on a machine with a GPU.",
        )
    device = torch.device("cuda", 0) if cuda and spec.device != "cpu" else torch.device("cpu")
    wanted = spec.compute_dtype
    if wanted == "auto":
        wanted = "bfloat16" if _is_bfloat16_faster(device, parameters) else "float32"
    threads = spec.threads or usable_threads()
    if device.type == "cpu" and parameters < SMALLEST_BFLOAT16_MODEL:
        return ComputePlan(device, getattr(torch, wanted), 1, 1)
    in_lanes = device.type == "cpu" and parameters < LARGEST_LANE_MODEL
    lanes = min(threads, MOST_LANES) if in_lanes else 1
    return ComputePlan(device, getattr(torch, wanted), threads, lanes)


def apply_plan(plan: ComputePlan) -> None:
    """Repeatable arithmetic: a fixed number of threads, kernels without races, one precision.

    Where a processor computes in bfloat16, products of float32 matrices (the output head) are
    rounded to bfloat16 on the way in, but summed and handed on in float32.
    """
    torch.set_num_threads(plan.threads)
    torch.use_deterministic_algorithms(True, warn_only=True)
    # Every buffer that is read here has been written; filling fresh ones costs a tenth of a step.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    torch.backends.cudnn.benchmark = False
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    if plan.device.type == "cpu":
        bfloat16 = plan.dtype == torch.bfloat16
        torch.set_float32_matmul_precision("medium" if bfloat16 else "highest")


def usable_threads() -> int:
    """Processors that this process may use: its affinity, within the control group's quota."""
    threads = len(os.sched_getaffinity(0))
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
    except (OSError, ValueError):
        return threads
    return threads if quota == "max" else max(1, min(threads, int(quota) // int(period)))


def _is_bfloat16_faster(device: torch.device, parameters: int) -> bool:
    """GPUs since Ampere, and processors with AMX or AVX512-BF16 for models of some size."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    flags = _cpu_flags()
    return parameters >= SMALLEST_BFLOAT16_MODEL and bool({"amx_bf16", "avx512_bf16"} & flags)


def _cpu_flags() -> set[str]:
    return set(cpu_line("flags").split())


def _processor_name() -> str:
    return cpu_line("model name") or "unknown processor"
