"""The whole product in a folder of its own, for benchmarks and drills.

Starts `manage.py up` as a user would, waits until it serves, and gives the calling process Django's
models over the same database. Used by the scripts beside it.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import django

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"(http://\S+?)(/accounts/link/\S+)")
START_LIMIT_S = 180
STOP_LIMIT_S = 90


@dataclass
class Stack:
    """A running product."""

    data_dir: Path
    process: subprocess.Popen[bytes]
    console: Path
    origin: str
    sign_in_path: str


@contextmanager
def running_stack(keep: bool = False) -> Iterator[Stack]:
    """Start everything in a fresh folder, stop and remove it afterwards.

    The prepared model of the checkout is reused where there is one. Raises RuntimeError with the
    end of the console when the start fails.
    """
    data_dir = Path(tempfile.mkdtemp(prefix="temper-bench-"))
    _reuse_prepared_model(data_dir)
    os.environ["TEMPER_DATA_DIR"] = str(data_dir)
    console = data_dir / "console.txt"
    with console.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, str(ROOT / "manage.py"), "up"],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        origin, path = _wait_for_link(process, console)
        os.environ["DJANGO_SETTINGS_MODULE"] = "webapp.settings"
        django.setup()
        yield Stack(data_dir, process, console, origin, path)
    finally:
        stop(process)
        if not keep:
            shutil.rmtree(data_dir, ignore_errors=True)


def stop(process: subprocess.Popen[bytes]) -> None:
    """Ctrl+C, then force."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)


def _reuse_prepared_model(data_dir: Path) -> None:
    """Preparing the model once on a machine is enough."""
    prepared = ROOT / "var" / "models"
    if (prepared / "progress.json").exists():
        shutil.copytree(prepared, data_dir / "models", copy_function=os.link)


def _wait_for_link(process: subprocess.Popen[bytes], console: Path) -> tuple[str, str]:
    """Origin and path of the sign-in link that the console prints."""
    deadline = time.monotonic() + START_LIMIT_S
    while time.monotonic() < deadline:
        text = console.read_text(errors="replace")
        if found := LINK.search(text):
            return found[1], found[2]
        if process.poll() is not None:
            break
        time.sleep(0.2)
    raise RuntimeError(f"the product did not start:\n{console.read_text(errors='replace')[-3000:]}")
