"""What the kernel tells of the processor, and what its mathematics library must be told first.

Both `use_` functions are called by `workers.trainer_main` as its first acts; the first by the tests
too, which train in their own process.
"""

from __future__ import annotations

import os
from pathlib import Path


def use_repeatable_products() -> None:
    """Have equal matrix products give equal bits, on processors that are not Intel's too.

    There MKL otherwise chooses its kernel by where a matrix happens to lie in memory, so that a
    resumed run differs from an undisturbed one in the last bits (seen on an AMD EPYC).
    """
    if cpu_line("vendor_id") != "GenuineIntel":
        os.environ.setdefault("MKL_CBWR", "AVX2,STRICT")


def use_large_pages() -> None:
    """Have PyTorch ask the kernel for pages of 2 MiB for its large buffers.

    Each step allocates a gradient for each weight anew; with pages of 4 KiB the first touch of such
    a buffer took longer than all arithmetic on it (measured: 540 MB in 0.40 s, with large pages in
    0.12 s). Must come before the first tensor; where the kernel has none, nothing changes.
    """
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")


def cpu_line(key: str) -> str:
    """What the kernel says of the processor under that name; empty when it says nothing."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith(key):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return ""
