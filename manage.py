#!/usr/bin/env python3
"""Temper's command line: `./manage.py up`, `doctor`, `login-link` and Django's own commands.

Runs with the packages of `.venv` from any directory, whichever Python it was started with; a
command may be spelled with dashes.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent


def spelled_for_django(arguments: list[str]) -> list[str]:
    """`login-link` as `login_link`: a Python module cannot have a dash in its name."""
    if len(arguments) > 1 and not arguments[1].startswith("-"):
        return [arguments[0], arguments[1].replace("-", "_"), *arguments[2:]]
    return arguments


def start_again_in_venv() -> None:
    """Give way to the Python of `.venv`, where there is one and this is another."""
    venv = REPOSITORY / ".venv"
    python = venv / "bin" / "python"
    if python.exists() and not os.path.samefile(sys.prefix, venv):
        os.execv(python, [str(python), *sys.argv])


def missing_packages(error: ImportError) -> str:
    """What to do when Python lacks a package."""
    suggested = REPOSITORY / ".venv" / "bin" / "python"
    return (
        f"Python at {sys.executable} lacks a package of Temper ({error}).\n"
        f"Run `make setup` in {REPOSITORY}, then use {suggested} manage.py."
    )


def main() -> None:
    """Hand the command over to Django, with known failures told in a sentence."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
    sys.path.insert(0, str(REPOSITORY))
    try:
        from django.core.exceptions import ImproperlyConfigured
        from django.core.management import execute_from_command_line

        from webapp.launcher.errors import LauncherError
    except ImportError as error:
        start_again_in_venv()
        raise SystemExit(missing_packages(error)) from error
    try:
        execute_from_command_line(spelled_for_django(sys.argv))
    except (LauncherError, ImproperlyConfigured) as error:
        raise SystemExit(f"Error: {error}") from error


if __name__ == "__main__":
    main()
