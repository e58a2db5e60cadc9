"""Exports as programs see them."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from training_core.contract.exports import ExportCheck, ExportDtype
from webapp.api.checkpoints import CheckpointName
from webapp.api.outputs.document import Document
from webapp.api.outputs.numbers import Number, plain
from webapp.registry.models import ModelExport


class ExportIn(Document):
    """What to make."""

    checkpoint: CheckpointName = "latest"
    """`latest`, `best` (by held-out pass@1), or the step of a checkpoint that is on disk."""
    dtype: ExportDtype = "float32"
    """Type of the weights: float32 keeps them bit for bit, bfloat16 halves their size."""


class ExportedFileOut(Document):
    """One file of the folder."""

    name: str
    size: int
    """Bytes."""
    sha256: str
    """Hash of its content, in hex."""


class ExportCheckOut(Document):
    """What loading the folder has shown."""

    tokens: int
    """Tokens of the prompt that the folder and the checkpoint have both read."""
    largest_difference: Number
    """Largest absolute difference of a logit to the checkpoint's."""
    same_choice: int
    """Positions of the prompt after which both hold the same token for the likeliest."""


class ExportOut(Document):
    """A checkpoint on its way to a plain model folder, or as one."""

    id: UUID
    run: int
    """Number of its run."""
    project: str
    """Slug of the project that it belongs to."""
    step: int
    """Optimiser steps done when the checkpoint was saved."""
    dtype: str
    """Type of the weights."""
    owner: str
    """User name of who asked for it."""
    state: str
    """`queued`, `running`, `ready`, `failed`, `cancelled` or `expired`."""
    message: str
    """Why it failed."""
    advice: str
    """What to do about it."""
    doing: str
    """What its worker does now."""
    done: int
    """Bytes handled, of `total`."""
    total: int
    folder: str
    """Name of the folder that the archive holds."""
    parameters: int
    """Weights in the files; a tied matrix counts once."""
    size_bytes: int
    """All files together."""
    files: list[ExportedFileOut]
    """All files by name, once it is ready."""
    check: ExportCheckOut | None
    """Null until it is ready, and where memory was too small to load it."""
    created_at: datetime
    finished_at: datetime | None
    expires_at: datetime | None
    """When the folder is removed; null while it is made and for one that is kept."""


class ExportList(Document):
    """Exports of a run, the newest first."""

    items: list[ExportOut]


_MADE = {"run", "project", "owner", "folder", "files", "check"}


def export_out(export: ModelExport) -> ExportOut:
    """The answer for an export."""
    fields = {n: plain(getattr(export, n)) for n in ExportOut.model_fields if n not in _MADE}
    return ExportOut(
        **fields,
        run=export.run.number,
        project=export.run.project.slug,
        owner=export.owner.get_username(),
        folder=export.slug,
        files=[ExportedFileOut.model_validate(file) for file in export.files],
        check=_check_out(export),
    )


def _check_out(export: ModelExport) -> ExportCheckOut | None:
    """The stored result of the check as an answer."""
    if not export.check_result:
        return None
    check = ExportCheck.model_validate(export.check_result)
    return ExportCheckOut(
        tokens=check.tokens,
        largest_difference=plain(check.largest_difference),
        same_choice=check.same_choice,
    )
