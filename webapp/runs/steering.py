"""The buttons of a run's page: what each does, and what it asks before.

Called by the control view. The deeds are `webapp.runs.services`; here are their words.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from webapp.accounts.models import User
from webapp.runs import services
from webapp.runs.models import Run
from webapp.ui.wording import format_bytes


@dataclass(frozen=True)
class Command:
    """One button."""

    slug: str
    """Name in the address."""
    label: str | Promise
    """On the button."""
    icon: str
    do: Callable[[Run, User], Any]
    done: str | Promise
    """Said after it was done."""
    question: str | Promise = ""
    """Title of the confirmation; empty when none is asked."""
    consequence: Callable[[Run], str] | None = None
    """What will happen, in sentences."""
    is_dangerous: bool = False
    needs_name: bool = False
    """Whether the run's name must be typed."""


def _stop_consequence(run: Run) -> str:
    if not run.is_live:
        return _("It leaves the queue. What it has saved stays, and you can resume it later.")
    return _(
        "The trainer saves the last whole step (now step %(step)s of %(total)s) and ends; a step "
        "that it is in the middle of is dropped. You can resume it later."
    ) % {"step": f"{run.step:,}", "total": f"{run.total_steps:,}"}


def _pause_consequence(run: Run) -> str:
    if not run.is_live:
        return _("It leaves the queue until you resume it.")
    return _(
        "The trainer saves the last whole step (now step %(step)s) and frees its worker for other "
        "runs. Resume goes on from there."
    ) % {"step": f"{run.step:,}"}


def _delete_consequence(run: Run) -> str:
    kept = list(run.checkpoints.on_disk())
    return _(
        "Its curves, %(groups)s groups of rollouts and %(checkpoints)s checkpoints (%(size)s) are "
        "removed from disk. This cannot be undone. Runs that were started from its checkpoints "
        "keep their own copies."
    ) % {
        "groups": f"{run.rollout_groups.count():,}",
        "checkpoints": len(kept),
        "size": format_bytes(sum(checkpoint.size_bytes for checkpoint in kept)),
    }


COMMANDS = {
    command.slug: command
    for command in (
        Command(
            "stop",
            gettext_lazy("Stop"),
            "stop",
            services.stop_run,
            gettext_lazy("Stopping: the trainer saves its last whole step first."),
            gettext_lazy("Stop this run?"),
            _stop_consequence,
            is_dangerous=True,
        ),
        Command(
            "pause",
            gettext_lazy("Pause"),
            "pause",
            services.pause_run,
            gettext_lazy("Pausing: the trainer saves its last whole step first."),
            gettext_lazy("Pause this run?"),
            _pause_consequence,
        ),
        Command(
            "resume",
            gettext_lazy("Resume"),
            "play",
            services.resume_run,
            gettext_lazy("Back in the queue."),
        ),
        Command(
            "evaluate",
            gettext_lazy("Evaluate now"),
            "gauge",
            services.evaluate_now,
            gettext_lazy("Asked for: the trainer evaluates after this step."),
        ),
        Command(
            "checkpoint",
            gettext_lazy("Save now"),
            "save",
            services.checkpoint_now,
            gettext_lazy("Asked for: the trainer saves after this step."),
        ),
        Command(
            "archive",
            gettext_lazy("Archive"),
            "file",
            services.archive_run,
            gettext_lazy("Done."),
        ),
        Command(
            "delete",
            gettext_lazy("Delete"),
            "trash",
            services.delete_run,
            gettext_lazy("Deleted."),
            gettext_lazy("Delete this run for good?"),
            _delete_consequence,
            is_dangerous=True,
            needs_name=True,
        ),
    )
}
