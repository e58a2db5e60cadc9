"""What the trainer process takes of its machine; logged with each step."""

from __future__ import annotations

import psutil
import torch


class MachineMeter:
    """Memory and processor time of this process since the last reading."""

    def __init__(self) -> None:
        self._process = psutil.Process()
        self._process.cpu_percent()

    def read(self) -> dict[str, float]:
        """Metrics of the moment; GPU memory only where there is a GPU."""
        values = {
            "system/rss": float(self._process.memory_info().rss),
            "system/cpu": float(self._process.cpu_percent()),
        }
        if torch.cuda.is_available():
            values["system/gpu_memory"] = float(torch.cuda.memory_allocated())
        return values
