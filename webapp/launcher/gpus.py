"""What NVIDIA devices this machine has, read from the driver, never from torch.

Called by `manage.py up` (how many training slots), `doctor` and the tests. A machine without a
driver is an ordinary machine: the answer is an empty list, and `driver_problem` tells why.
"""

from __future__ import annotations

from dataclasses import dataclass

import pynvml


@dataclass(frozen=True)
class Gpu:
    """One device."""

    index: int
    name: str
    memory_bytes: int

    def __str__(self) -> str:
        return f"GPU {self.index}: {self.name}, {self.memory_bytes / 2**30:.0f} GiB"


def find_gpus() -> list[Gpu]:
    """Every device that the driver reports; empty without a driver."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return []
    try:
        return [describe(index) for index in range(pynvml.nvmlDeviceGetCount())]
    finally:
        pynvml.nvmlShutdown()


def describe(index: int) -> Gpu:
    """Name and size of one device."""
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    name = pynvml.nvmlDeviceGetName(handle)
    memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
    return Gpu(index, name if isinstance(name, str) else name.decode(), int(memory.total))


def driver_problem() -> str | None:
    """Why the driver cannot be asked; None when it can."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return str(error)
    pynvml.nvmlShutdown()
    return None
