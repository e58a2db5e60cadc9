"""Takes down what an `up` that was killed has left running. Called at the start of the next one.

The recorded processes are asked first and given the time of a proper stop, so that their runs
write a checkpoint and return to the queue; then whoever else carries the data directory in the
environment (trainers that lost their worker). The engines are not touched here: each finds and
stops its own leftover, after these have had a database to say goodbye to.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

from webapp.launcher.descendants import Steps, end_all
from webapp.launcher.errors import LauncherError
from webapp.launcher.process_records import forget, instance_processes, recorded_processes

RECORDED_STEPS: Steps = ((signal.SIGTERM, 45.0), (signal.SIGKILL, 5.0))
OTHER_STEPS: Steps = ((signal.SIGTERM, 5.0), (signal.SIGKILL, 5.0))


def take_down_leftovers(base: Path, say: Callable[[str], None]) -> int:
    """End them all; the number found. The caller holds the data directory's lock."""
    recorded = recorded_processes(base)
    found = {process.pid for process in (*recorded.values(), *instance_processes(base))}
    if found:
        say(f"An earlier start was killed; ending the {len(found)} processes it left.")
    stubborn = end_all(recorded.values(), RECORDED_STEPS)
    stubborn += end_all(instance_processes(base), OTHER_STEPS)
    if stubborn:
        pids = ", ".join(str(process.pid) for process in stubborn)
        raise LauncherError(f"Processes {pids} of an earlier start do not end, even when killed.")
    for path in (base / "processes").glob("*.json"):
        forget(base, path.stem)
    return len(found)
