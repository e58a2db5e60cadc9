"""What must be said to the processor's mathematics library before its first product.

Called by `workers.trainer_main` as its first act, and by tests that train in their own process.
"""

from __future__ import annotations

import os
from pathlib import Path


def use_repeatable_products() -> None:
    """Have equal matrix products give equal bits, on processors that are not Intel's too.

    There MKL otherwise chooses its kernel by where a matrix happens to lie in memory, so that a
    resumed run differs from an undisturbed one in the last bits (seen on an AMD EPYC).
    """
    if not _is_intel():
        os.environ.setdefault("MKL_CBWR", "AVX2,STRICT")


def _is_intel() -> bool:
    try:
        return "GenuineIntel" in Path("/proc/cpuinfo").read_text()
    except OSError:
        return False
