"""The buttons of a run's page: what each does, and what it asks before.

Called by the control view. The deeds are `webapp.runs.services`; here are their words.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from webapp.accounts.models import User
from webapp.runs import services
from webapp.runs.models import Run
from webapp.ui.wording import format_bytes


@dataclass(frozen=True)
class Command:
    """One button."""

    slug: str
    """Name in the address."""
    label: str
    """On the button."""
    icon: str
    do: Callable[[Run, User], Any]
    done: str
    """Said after it was done."""
    question: str = ""
    """Title of the confirmation; empty when none is asked."""
    consequence: Callable[[Run], str] | None = None
    """What will happen, in sentences."""
    is_dangerous: bool = False
    needs_name: bool = False
    """Whether the run's name must be typed."""


def _stop_consequence(run: Run) -> str:
    if not run.is_live:
        return "It leaves the queue. What it has saved stays, and you can resume it later."
    return (
        f"The trainer saves the last whole step (now step {run.step:,} of {run.total_steps:,}) and "
        "ends; a step that it is in the middle of is dropped. You can resume it later."
    )


def _pause_consequence(run: Run) -> str:
    if not run.is_live:
        return "It leaves the queue until you resume it."
    return (
        f"The trainer saves the last whole step (now step {run.step:,}) and frees its worker for "
        "other runs. Resume goes on from there."
    )


def _delete_consequence(run: Run) -> str:
    kept = list(run.checkpoints.on_disk())
    size = format_bytes(sum(checkpoint.size_bytes for checkpoint in kept))
    return (
        f"Its curves, {run.rollout_groups.count():,} groups of rollouts and {len(kept)} "
        f"checkpoints ({size}) are removed from disk. This cannot be undone. Runs that were "
        "started from its checkpoints keep their own copies."
    )


COMMANDS = {
    command.slug: command
    for command in (
        Command(
            "stop",
            "Stop",
            "stop",
            services.stop_run,
            "Stopping: the trainer saves its last whole step first.",
            "Stop this run?",
            _stop_consequence,
            is_dangerous=True,
        ),
        Command(
            "pause",
            "Pause",
            "pause",
            services.pause_run,
            "Pausing: the trainer saves its last whole step first.",
            "Pause this run?",
            _pause_consequence,
        ),
        Command("resume", "Resume", "play", services.resume_run, "Back in the queue."),
        Command(
            "evaluate",
            "Evaluate now",
            "gauge",
            services.evaluate_now,
            "Asked for: the trainer evaluates after this step.",
        ),
        Command(
            "checkpoint",
            "Save now",
            "save",
            services.checkpoint_now,
            "Asked for: the trainer saves after this step.",
        ),
        Command("archive", "Archive", "file", services.archive_run, "Done."),
        Command(
            "delete",
            "Delete",
            "trash",
            services.delete_run,
            "Deleted.",
            "Delete this run for good?",
            _delete_consequence,
            is_dangerous=True,
            needs_name=True,
        ),
    )
}
