"""Start a run from another run's checkpoint. Called by `services.restart_from`.

The child's directory gets the checkpoint under its own name, by hard links where the disk allows:
checkpoint files are written once and never changed, so either run may remove its name for them.
The trainer then finds it as the newest checkpoint and goes on from it, as after a pause.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from django.utils.translation import gettext as _

from training_core.contract.field_errors import FieldError
from training_core.contract.rundir import fsync_directory
from training_core.contract.spec import RunSpec
from webapp.runs.models import Checkpoint, Run
from webapp.runs.refusals import LaunchRefused


def refuse_bad_fork(checkpoint: Checkpoint, spec: RunSpec) -> None:
    """Raise LaunchRefused where the spec cannot go on from the checkpoint."""
    if checkpoint.removed_at is not None or not checkpoint.directory.is_dir():
        raise LaunchRefused(
            _("The checkpoint after step %(step)s is no longer on disk; choose another.")
            % {"step": checkpoint.step}
        )
    parent = checkpoint.run.read_spec()
    errors = []
    if spec.model != parent.model:
        words = _("The checkpoint holds %(model)s; keep that model.")
        errors.append(FieldError("model.ref", words % {"model": parent.model.ref}))
    if spec.total_steps <= checkpoint.step:
        errors.append(
            FieldError(
                "stages",
                _(
                    "The checkpoint has done %(done)s steps already; the stages together "
                    "need more than that, and have %(total)s."
                )
                % {"done": checkpoint.step, "total": spec.total_steps},
            )
        )
    elif stage_of(spec, checkpoint.step) != stage_of(parent, checkpoint.step):
        errors.append(
            FieldError(
                "stages",
                _("Keep the stages before step %(step)s as they are: their steps are done.")
                % {"step": checkpoint.step},
            )
        )
    if errors:
        raise LaunchRefused(errors[0].message, errors)


def stage_of(spec: RunSpec, step: int) -> tuple[int, str, int]:
    """(index, type, steps done before it) of the stage in which step number `step` was done."""
    done = 0
    for index, stage in enumerate(spec.stages):
        if step <= done + stage.steps:
            return index, stage.type, done
        done += stage.steps
    return len(spec.stages), "", done


def link_checkpoint(checkpoint: Checkpoint, child: Run) -> None:
    """Give the child the checkpoint, whole or not at all. Raises LaunchRefused."""
    target = child.run_dir.checkpoint(checkpoint.step)
    aside = target.with_name(f".tmp-{target.name}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(checkpoint.directory, aside, copy_function=link_or_copy)
        aside.rename(target)
        fsync_directory(target.parent)
    except OSError as error:
        shutil.rmtree(child.directory, ignore_errors=True)
        raise LaunchRefused(
            _("The checkpoint after step %(step)s could not be taken over: %(reason)s.")
            % {"step": checkpoint.step, "reason": error}
        ) from error


def link_or_copy(source: str, target: str) -> None:
    """A second name for the file, or a copy where the disk has no hard links."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
        with Path(target).open("rb") as file:
            os.fsync(file.fileno())
