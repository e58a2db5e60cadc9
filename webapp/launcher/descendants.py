"""Ending many processes at once, and adopting those whose parents are gone.

Called by `process_tree.py` and `leftovers.py`. What would surprise: after `become_subreaper` the
kernel makes this process the parent of every orphan below it. That is what lets `up` find a
trainer whose worker was killed; it is also why such orphans must be reaped here.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Callable, Iterable

import psutil

from webapp.launcher.process_end import POLL_S, is_alive

PR_SET_CHILD_SUBREAPER = 36
Steps = tuple[tuple[int, float], ...]


def become_subreaper() -> None:
    """Have orphaned descendants handed to this process instead of to init."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def descendants_of_us() -> list[psutil.Process]:
    """Every process below this one, engines included."""
    found: list[psutil.Process] = psutil.Process().children(recursive=True)
    return found


def reap_orphans(own_children: Iterable[int]) -> None:
    """Collect the exit status of adopted processes; `own_children` are waited for elsewhere."""
    spared = set(own_children)
    for process in psutil.Process().children():
        if process.pid not in spared and not is_alive(process):
            with contextlib.suppress(ChildProcessError):
                os.waitpid(process.pid, os.WNOHANG)


def end_all(
    processes: Iterable[psutil.Process],
    steps: Steps,
    is_forced: Callable[[], bool] = lambda: False,
) -> list[psutil.Process]:
    """Send all of them each signal in turn, with its patience; return who is left."""
    alive = [process for process in processes if is_alive(process)]
    for signal_number, patience_s in steps:
        if not alive:
            break
        if is_forced() and signal_number != signal.SIGKILL:
            continue
        for process in alive:
            with contextlib.suppress(psutil.Error):
                process.send_signal(signal_number)
        alive = wait_for_all(alive, patience_s, is_forced)
    return alive


def wait_for_all(
    processes: list[psutil.Process], patience_s: float, is_forced: Callable[[], bool]
) -> list[psutil.Process]:
    """Wait until they are gone, time is up or the user has lost patience; return who is left."""
    give_up = time.monotonic() + patience_s
    alive = processes
    while alive and time.monotonic() < give_up and not is_forced():
        time.sleep(POLL_S)
        alive = [process for process in alive if is_alive(process)]
    return alive
