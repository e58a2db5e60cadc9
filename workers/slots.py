"""Which device each training slot of this worker gets.

Called by `workers.tasks.train_run`. GPUs are counted by the driver, never by torch: asking CUDA in
this process would cost memory on every device.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from webapp.launcher.gpus import find_gpus


class Devices:
    """The devices of this worker and how many runs each has."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._load = dict.fromkeys(names, 0)
        self._lock = threading.Lock()

    @contextmanager
    def take(self, wish: str) -> Iterator[str]:
        """CUDA_VISIBLE_DEVICES for one run: the least used device, or none for a run on the CPU."""
        device = self._pick() if wish != "cpu" else ""
        try:
            yield device
        finally:
            with self._lock:
                if device:
                    self._load[device] -= 1

    def _pick(self) -> str:
        """Count one more run on the device with the fewest."""
        with self._lock:
            if not self._load:
                return ""
            device = min(self._load, key=lambda name: self._load[name])
            self._load[device] += 1
            return device


def visible_devices() -> tuple[str, ...]:
    """What CUDA_VISIBLE_DEVICES allows, else every device that the driver reports."""
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is not None:
        return tuple(name.strip() for name in chosen.split(",") if name.strip())
    return tuple(str(gpu.index) for gpu in find_gpus())


DEVICES = Devices(visible_devices())
