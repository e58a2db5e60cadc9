"""What the models page shows: base models, exports, checkpoints with what they achieved.

Called by the views. It joins rows of several apps in a fixed number of queries; templates only lay
them out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple
from uuid import UUID

from django.core.paginator import Page, Paginator
from django.db.models import Q
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from training_core.contract.events import DomainResult, Interval
from training_core.contract.exports import ExportCheck, ExportedFile
from webapp.accounts.models import Project, User
from webapp.evaluation.models import EvalRun
from webapp.registry.access import checkpoints_for, exports_for, may_change, runs_for
from webapp.registry.base_models import BaseModel, base_models
from webapp.registry.models import ModelExport
from webapp.registry.services import DTYPES, folder_bytes
from webapp.runs.models import Checkpoint

CHECKPOINTS_PER_PAGE = 40
MOST_EXPORTS = 50
MOST_BASES = 50
"""Model references that are described; runs may name any number."""


class CheckpointView(NamedTuple):
    """One checkpoint with its held-out result."""

    checkpoint: Checkpoint
    solved: Interval | None
    """pass@1 over all domains at this step; None when it was not evaluated here."""
    before: Interval | None
    """pass@1 of what the run started from, under the same recipe."""


class ExportView(NamedTuple):
    """One export as its own page shows it."""

    export: ModelExport
    may_change: bool
    files: list[ExportedFile]
    check: ExportCheck | None


class ExportChoice(NamedTuple):
    """One type of weights that a checkpoint can be exported in."""

    dtype: str
    title: str | Promise
    words: str | Promise
    size_bytes: int
    """About how large the folder is."""


CHOICE_WORDS = {
    "float32": (_("Exact"), _("The weights as they were trained, bit for bit.")),
    "bfloat16": (
        _("Half the size"),
        _(
            "Rounded to bfloat16, the type that most models are published in. How far its outputs "
            "are from the exact ones is measured and stands in the model card."
        ),
    ),
}


def export_choices(checkpoint: Checkpoint) -> list[ExportChoice]:
    """What a person may choose from."""
    return [
        ExportChoice(dtype, *CHOICE_WORDS[dtype], folder_bytes(checkpoint, dtype))
        for dtype in DTYPES
    ]


def view_of(user: User, export: ModelExport) -> ExportView:
    """An export with its documents read."""
    return ExportView(
        export,
        may_change(user, export),
        [ExportedFile.model_validate(file) for file in export.files],
        ExportCheck.model_validate(export.check_result) if export.check_result else None,
    )


def bases_for(user: User, project: Project | None) -> list[BaseModel]:
    """The built-in models and those that visible runs started from, the newest first."""
    runs = runs_for(user, project).order_by("-number")
    refs = runs.values_list("spec__model__ref", flat=True)[:2000]
    return base_models(list(dict.fromkeys(str(ref) for ref in refs if ref))[:MOST_BASES])


def list_exports(user: User, project: Project | None) -> list[ModelExport]:
    """The newest exports that stand, and one's own that came to nothing."""
    found = exports_for(user, project).select_related("run__project", "owner")
    listed = found.filter(Q(state__in=ModelExport.STANDING) | Q(owner=user))
    return list(listed.order_by("-created_at")[:MOST_EXPORTS])


def checkpoints_page(
    user: User, project: Project | None, words: str, number: int
) -> Page[Checkpoint]:
    """A page of checkpoints on disk, the newest first; `words` picks runs by name or #number."""
    found = checkpoints_for(user, project).select_related("run__owner", "run__project")
    found = found.order_by("-created_at", "-pk")
    if words:
        wanted = words.removeprefix("#")
        named = Q(run__name__icontains=words)
        if wanted.isascii() and wanted.isdecimal() and len(wanted) < 10:
            named |= Q(run__number=int(wanted))
        found = found.filter(named)
    return Paginator(found, CHECKPOINTS_PER_PAGE).get_page(number)


def with_results(checkpoints: Sequence[Checkpoint]) -> list[CheckpointView]:
    """Checkpoints with held-out results, in two queries for all of them."""
    runs = {checkpoint.run_id for checkpoint in checkpoints}
    at_steps = _newest(
        EvalRun.objects.current()
        .filter(run__in=runs, step__in={checkpoint.step for checkpoint in checkpoints})
        .order_by("at", "pk")
    )
    starts = {
        row.run_id: row
        for row in EvalRun.objects.current()
        .filter(run__in=runs)
        .order_by("run_id", "step", "at", "pk")
        .distinct("run_id")
    }
    views = []
    for checkpoint in checkpoints:
        row = at_steps.get((checkpoint.run_id, checkpoint.step))
        start = starts.get(checkpoint.run_id)
        is_same = row is not None and start is not None and start.recipe == row.recipe
        before = start if is_same and start != row else None
        views.append(CheckpointView(checkpoint, _solved(row), _solved(before)))
    return views


def _newest(rows: Iterable[EvalRun]) -> dict[tuple[UUID, int], EvalRun]:
    """(run, step) to the evaluation that came last."""
    return {(row.run_id, row.step): row for row in rows}


def _solved(row: EvalRun | None) -> Interval | None:
    """pass@1 over all domains of an evaluation."""
    if row is None or not row.results:
        return None
    return DomainResult.model_validate(row.results[0]).pass_at_1
