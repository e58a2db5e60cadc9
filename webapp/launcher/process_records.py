"""Notes about started processes, so that the next `manage.py up` finds what a killed one left.

A note is `var/processes/NAME.json`. A pid alone proves nothing, since pids are used again: the
start time in kernel ticks, the boot and the command line must all agree. Descendants that have
outlived their parents carry no note; they are known by a variable in their environment.
"""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

INSTANCE_VARIABLE = "TEMPER_INSTANCE"
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
START_TICKS_FIELD = 19  # of /proc/PID/stat, counted after the ")" that ends the program's name


@dataclass(frozen=True)
class ProcessRecord:
    """What tells one process from every other."""

    pid: int
    start_ticks: int
    boot_id: str
    command: list[str]


def start_ticks(pid: int) -> int | None:
    """When the kernel started the process, in ticks since boot; None when it is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return int(stat.rpartition(")")[2].split()[START_TICKS_FIELD])


def boot_id() -> str:
    """The identity of this boot of the machine."""
    try:
        return BOOT_ID.read_text().strip()
    except OSError:
        return ""


def record_path(base: Path, name: str) -> Path:
    """The note of one process."""
    return base / "processes" / f"{name}.json"


def remember(base: Path, name: str, pid: int, command: list[str]) -> None:
    """Write the note of a process that was just started."""
    ticks = start_ticks(pid)
    if ticks is None:
        return
    path = record_path(base, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    record = ProcessRecord(pid, ticks, boot_id(), command)
    aside = path.with_suffix(".new")
    aside.write_text(json.dumps(asdict(record)))
    aside.replace(path)


def forget(base: Path, name: str) -> None:
    """Remove the note of a process that has ended."""
    record_path(base, name).unlink(missing_ok=True)


def recorded_processes(base: Path) -> dict[str, psutil.Process]:
    """The noted processes that are still the same ones and run, by name."""
    found = {}
    for path in sorted((base / "processes").glob("*.json")):
        with contextlib.suppress(OSError, ValueError, TypeError, psutil.Error):
            record = ProcessRecord(**json.loads(path.read_text()))
            if is_same_process(record):
                found[path.stem] = psutil.Process(record.pid)
    return found


def is_same_process(record: ProcessRecord) -> bool:
    """Whether the pid still belongs to the process of the note."""
    return (
        record.boot_id == boot_id()
        and start_ticks(record.pid) == record.start_ticks
        and psutil.Process(record.pid).cmdline() == record.command
    )


def instance_processes(base: Path) -> list[psutil.Process]:
    """This user's processes that descend from an `up` of this data directory, bar our own line."""
    own_line = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    return [
        process
        for process in psutil.process_iter()
        if process.pid not in own_line and belongs_to_instance(process, base)
    ]


def belongs_to_instance(process: psutil.Process, base: Path) -> bool:
    """Whether the environment it was started with names this data directory."""
    try:
        return bool(process.environ().get(INSTANCE_VARIABLE) == str(base))
    except (psutil.Error, OSError, ValueError):
        return False
