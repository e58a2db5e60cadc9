"""Model references that are paths: whether a model is there, said without telling about the disk.

Called by `preflight` and `disk`. Anybody who may launch may type any path, so for places outside
the folders of Temper itself one sentence stands for "not there", "no model" and "not allowed":
three would be a way to search the server's disk.
"""

from __future__ import annotations

import os
from pathlib import Path
from uuid import UUID

from django.conf import settings
from django.utils.translation import gettext as _

from webapp.runs.model_files import fault_of, read_model_files


def is_path(ref: str) -> bool:
    """Whether a reference is spelled like a path."""
    return ref.startswith(("/", ".", "~"))


def find_model_directory(ref: str) -> Path | None:
    """The directory of a model that can be read; None for anything else, whatever the reason."""
    try:
        path = Path(ref).expanduser()
        return path if os.access(path / "config.json", os.R_OK) and path.is_dir() else None
    except (OSError, RuntimeError, ValueError):  # too long, no such user, a loop, a NUL
        return None


def problem_with_path(ref: str) -> str:
    """A sentence when no model can be trained from a path, else an empty string."""
    folder = find_model_directory(ref)
    if folder is not None:
        fault = fault_of(read_model_files(folder))
        words = _("%(model)s %(fault)s.") % {"model": _short(ref), "fault": fault}
        return words if fault else ""
    return _problem_within(ref) or no_model(ref)


def no_model(ref: str) -> str:
    """The one sentence for places about which nothing is told."""
    return _(
        "%(model)s is no model that this server can read; give a directory written by "
        "save_pretrained, with its config.json."
    ) % {"model": _short(ref)}


def find_run_of_path(ref: str) -> UUID | None:
    """The run to which a checkpoint or an export belongs; None for any other path."""
    try:
        path = Path(ref).expanduser().resolve()
        for root in (settings.RUNS_DIR, settings.EXPORTS_DIR):
            home = Path(root).resolve()
            if path.is_relative_to(home) and path != home:
                return UUID(path.relative_to(home).parts[0])
    except (OSError, RuntimeError, ValueError):
        pass
    return None


def _problem_within(ref: str) -> str:
    """The exact reason for a path below a folder of Temper, else an empty string."""
    try:
        path = Path(ref).expanduser().resolve()
        homes = (settings.MODELS_DIR, settings.RUNS_DIR, settings.EXPORTS_DIR)
        roots = [Path(root).resolve() for root in homes]
        if not any(path.is_relative_to(root) for root in roots):
            return ""
        if not path.is_dir():
            return _("There is no directory %(folder)s on this machine.") % {"folder": _short(ref)}
        if not (path / "config.json").is_file():
            words = _("%(folder)s holds no config.json, so it is no model.")
            return words % {"folder": _short(ref)}
    except (OSError, RuntimeError, ValueError):
        return ""
    return _("%(folder)s/config.json cannot be read by this server.") % {"folder": _short(ref)}


def _short(ref: str) -> str:
    """The reference as it was typed, cut where it is too long for a sentence."""
    return ref if len(ref) <= 200 else f"{ref[:200]}…"
