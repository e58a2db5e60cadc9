"""Whether a process is alive, and how to end it.

Called by the engines and by the supervisor of `manage.py up`. What would surprise: a process that
ended but that nobody reaped (a zombie, as containers without a proper init leave them) counts as
gone; psutil's own wait would sit out its whole patience for one.
"""

from __future__ import annotations

import time

import psutil

POLL_S = 0.02


def is_alive(process: psutil.Process) -> bool:
    """Whether it still runs; a reused pid and a zombie are dead."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def wait_until_gone(process: psutil.Process, patience_s: float) -> bool:
    """Whether it ended within the time given."""
    give_up = time.monotonic() + patience_s
    while is_alive(process):
        if time.monotonic() > give_up:
            return False
        time.sleep(POLL_S)
    return True


def end_process(process: psutil.Process, steps: tuple[tuple[int, float], ...]) -> bool:
    """Send each signal in turn and give it its time; whether the process ended."""
    for signal_number, patience_s in steps:
        try:
            process.send_signal(signal_number)
        except psutil.NoSuchProcess:
            return True
        if wait_until_gone(process, patience_s):
            return True
    return False
