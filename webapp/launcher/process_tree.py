"""The processes of one `manage.py up`: keeps them running, then stops them in order.

Called by `up.py`, which says what to run. Order of stopping: the workers and beat, with time for
their runs to write a checkpoint and return to the queue; then the web server; then the engines.
Nothing is left behind: whatever still descends from this process at the end is killed.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import psutil

from webapp.launcher.child import ORPHAN_STEPS, Child, ChildSpec
from webapp.launcher.descendants import (
    become_subreaper,
    descendants_of_us,
    end_all,
    reap_orphans,
)
from webapp.launcher.engine_unit import Engine, EngineUnit
from webapp.launcher.process_records import INSTANCE_VARIABLE

TEND_EVERY_S = 0.5
REAP_EVERY = 10  # rounds
KILL_STEPS = ((signal.SIGKILL, 5.0),)


class ProcessTree:
    """Children and engines of one data directory."""

    def __init__(
        self, base: Path, say: Callable[[str], None], environment: Mapping[str, str] | None = None
    ) -> None:
        """Adopt orphans from now on; `environment` is that of the children."""
        self.base = base
        self.say = say
        self.children: list[Child] = []
        self.engines: list[EngineUnit] = []
        self.forced = threading.Event()
        inherited = os.environ if environment is None else environment
        self.environment = {
            **inherited,
            "TEMPER_DATA_DIR": str(base),  # absolute: children run in another directory
            INSTANCE_VARIABLE: str(base),
            "PYTHONUNBUFFERED": "1",
        }
        become_subreaper()

    def start_engine(self, name: str, engine: Engine) -> None:
        """Start an engine; it is stopped last."""
        self.engines.append(EngineUnit(name, engine, self.say))
        engine.start()

    def start_child(self, spec: ChildSpec) -> Child:
        """Start a child; children are stopped in the reverse order of their starts, by group."""
        child = Child(spec, self.base, self.environment, self.say)
        self.children.append(child)
        child.start()
        return child

    def watch(self, stop: threading.Event) -> None:
        """Keep everything running until the event is set."""
        rounds = 0
        while not stop.wait(TEND_EVERY_S):
            now = time.monotonic()
            units: list[EngineUnit | Child] = [*self.engines, *self.children]
            for unit in units:
                unit.tend(now)
            rounds += 1
            if rounds % REAP_EVERY == 0:
                reap_orphans(self._awaited_pids())

    def stop_children(self, children: list[Child]) -> None:
        """Stop these together, each within its patience, with all that descends from them."""
        below: dict[int, psutil.Process] = {}
        started = time.monotonic()
        for child in children:
            below.update({process.pid: process for process in child.descendants()})
            child.request_stop()
        waiting = children
        while waiting := [child for child in waiting if not child.has_ended()]:
            for child in waiting:
                below.update({process.pid: process for process in child.descendants()})
                late = time.monotonic() - started > child.spec.stop_patience_s
                if late or self.forced.is_set():
                    self.say(f"{child.name} is killed: {'no answer' if late else 'forced'}.")
                    child.kill()
            time.sleep(0.1)
        end_all(below.values(), ORPHAN_STEPS, self.forced.is_set)

    def stop(self, groups: tuple[tuple[str, ...], ...]) -> None:
        """Stop children by groups of name prefixes, the rest of them, then the engines."""
        remaining = list(self.children)
        for prefixes in (*groups, ("",)):
            group = [child for child in remaining if child.name.startswith(prefixes)]
            remaining = [child for child in remaining if child not in group]
            self.stop_children(group)
        engine_pids = self._engine_pids()
        strays = [process for process in descendants_of_us() if process.pid not in engine_pids]
        end_all(strays, ORPHAN_STEPS, self.forced.is_set)
        for unit in reversed(self.engines):
            unit.engine.stop()
        end_all(descendants_of_us(), KILL_STEPS)
        reap_orphans(())

    def _engine_pids(self) -> set[int]:
        """The engines' processes and what they forked."""
        pids = set()
        for unit in self.engines:
            process = unit.engine.running_process()
            if process is not None:
                pids |= {process.pid, *(each.pid for each in process.children(recursive=True))}
        return pids

    def _awaited_pids(self) -> set[int]:
        """Children whose end is noticed by their own Popen objects."""
        return self._engine_pids() | {
            child.process.pid for child in self.children if child.process is not None
        }
