"""What the kernel tells of the processor, and what its mathematics library must be told first.

`use_repeatable_products` is called by `workers.trainer_main` as its first act, and by the tests,
which train in their own process too.
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


def cpu_line(key: str) -> str:
    """What the kernel says of the processor under that name; empty when it says nothing."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith(key):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return ""
