"""What an installation holds, as JSON: rows of every table, answers of the curves endpoint, files.

Used by the backup's test in its own process, and run as a program against a restored installation.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import django

KEYS = ("reward", "rewards/correctness/mean", "entropy", "eval/pass@1")


def read_rows() -> dict[str, list[str]]:
    """Each table's rows in words."""
    from django.apps import apps  # noqa: PLC0415 - after django.setup

    return {
        model._meta.label: [str(row) for row in model._default_manager.order_by("pk").values()]
        for model in apps.get_models()
    }


def read_charts(username: str) -> dict[str, Any]:
    """What pages draw of each run."""
    from django.test import Client  # noqa: PLC0415

    from webapp.accounts.models import User  # noqa: PLC0415
    from webapp.runs.models import Run  # noqa: PLC0415

    client = Client(headers={"host": "localhost"})
    client.force_login(User.objects.get(username=username))
    charts = {}
    for run in Run.objects.order_by("number"):
        answer = client.get("/api/runs/curves", {"run": str(run.pk), "key": KEYS})
        assert answer.status_code == 200, answer.content
        charts[str(run.number)] = answer.json()
    return charts


def read_files(*folders: Path) -> dict[str, str]:
    """Hash of each file; what begins with a dot is nobody's."""
    return {
        f"{folder.name}/{path.relative_to(folder)}": hashlib.sha256(path.read_bytes()).hexdigest()
        for folder in folders
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith(".")
    }


def catch_up_all() -> None:
    """What the reaper does first for a run whose worker is silent."""
    from webapp import lifecycle  # noqa: PLC0415
    from webapp.runs.models import Run  # noqa: PLC0415

    for run in Run.objects.live():
        lifecycle.catch_up(run.pk)


if __name__ == "__main__":
    django.setup()
    found: dict[str, Any] = {"rows": read_rows()}
    catch_up_all()
    found["charts"] = read_charts(sys.argv[1])
    json.dump(found, sys.stdout)
