"""What is done with exports: ask for one, make it in a worker, keep it, remove it.

Called by this app's views, by `webapp.lifecycle` for the worker that makes one, and by the reaper.
A row is claimed by a guarded update and held by its number of attempts, as imports are: a message
that comes twice does nothing, a worker that was given up can change nothing any more. One export
is made at a time: each holds a whole model in memory and a process of the cpu queue, which has the
reaper's work to do as well.
"""

from __future__ import annotations

import logging
import shutil
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple, get_args
from uuid import UUID, uuid4

from django.conf import settings
from django.db import IntegrityError, connection, transaction
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext as _

from training_core.contract.exports import ExportDir, ExportDtype, ExportProgress, ExportResult
from training_core.contract.rundir import BESIDE_MODEL
from webapp.accounts.models import User
from webapp.audit.record import record, was_recorded
from webapp.metrics import live
from webapp.registry import dispatch, making
from webapp.registry.models import KEEP, ExportQuerySet, ModelExport
from webapp.registry.refusals import ExportRefused
from webapp.runs import status
from webapp.runs.models import Checkpoint, Run
from webapp.ui.wording import format_bytes, state_look

logger = logging.getLogger(__name__)
State = ModelExport.State
SILENT_AFTER = timedelta(seconds=60)
MOST_ATTEMPTS = 3
SPARE_BYTES = 200_000_000
CLAIM_LOCK = 0x6578706F7274
"""Key of the database's lock under which exports are claimed: the letters of "export"."""
DTYPES: tuple[str, ...] = get_args(ExportDtype)


class ExportClaim(NamedTuple):
    """A worker's right to make one export."""

    export_id: UUID
    attempt: int
    project_id: int | None
    folder: ExportDir


def request_export(checkpoint: Checkpoint, owner: User, dtype: str) -> ModelExport:
    """An export of a checkpoint: the one that stands, or a new one in the queue.

    Raises ExportRefused.
    """
    if dtype not in DTYPES:
        words = _("dtype: there is no %(given)s; use %(known)s.")
        raise ExportRefused(words % {"given": repr(dtype), "known": _(" or ").join(DTYPES)})
    same = ModelExport.objects.standing().filter(
        run=checkpoint.run, step=checkpoint.step, saved_at=checkpoint.created_at, dtype=dtype
    )
    if known := same.first():
        return known
    if problem := problem_with(checkpoint, dtype):
        raise ExportRefused(problem)
    try:
        with transaction.atomic():
            export = ModelExport.objects.create(
                run=checkpoint.run,
                checkpoint=checkpoint,
                owner=owner,
                step=checkpoint.step,
                saved_at=checkpoint.created_at,
                dtype=dtype,
            )
            _note("export.make", export, owner)
            _publish(export.pk, checkpoint.run.project_id, export.state)
            dispatch.send_export(export.pk)
    except IntegrityError:  # a double click: the other request was first
        return same.get()
    return export


def problem_with(checkpoint: Checkpoint, dtype: str) -> str:
    """Why a checkpoint cannot be exported now; empty when it can."""
    if checkpoint.removed_at is not None or not checkpoint.directory.is_dir():
        words = _("The checkpoint after step %(step)s is no longer on disk; choose another.")
        return words % {"step": f"{checkpoint.step:,}"}
    needed = folder_bytes(checkpoint, dtype) + SPARE_BYTES
    root = Path(settings.EXPORTS_DIR)
    free = shutil.disk_usage(next(each for each in (root, *root.parents) if each.exists())).free
    if free >= needed:
        return ""
    return _(
        "The export needs up to %(needed)s of disk and %(free)s are free. "
        "Delete exports or old runs first."
    ) % {"needed": format_bytes(needed), "free": format_bytes(free)}


def folder_bytes(checkpoint: Checkpoint, dtype: str) -> int:
    """About how large the folder will be: its weights, at most."""
    try:
        files = [path for path in checkpoint.directory.glob("*.safetensors") if path.is_file()]
        size = sum(path.stat().st_size for path in files if path.name not in BESIDE_MODEL)
    except OSError:
        size = checkpoint.size_bytes // 3  # weights and two moments
    return size // 2 if dtype == "bfloat16" else size


@transaction.atomic
def cancel_export(export: ModelExport, actor: User) -> bool:
    """Nobody wants it any more; whether it was still on its way. Its worker kills the process."""
    active = ModelExport.objects.active().filter(pk=export.pk)
    if not active.update(state=State.CANCELLED, finished_at=timezone.now()):
        return False
    _note("export.cancel", export, actor)
    _publish(export.pk, export.run.project_id, State.CANCELLED)
    return True


def keep_export(export: ModelExport, *, keep: bool = True) -> None:
    """Let it stay until somebody deletes it, or let it expire after all."""
    until = None if keep else timezone.now() + KEEP
    ModelExport.objects.filter(pk=export.pk, state=State.READY).update(expires_at=until)


@transaction.atomic
def delete_export(export: ModelExport, actor: User) -> None:
    """Remove the folder and the row.

    Raises ExportRefused while something needs it, ModelExport.DoesNotExist when it is gone.
    """
    export = (
        ModelExport.objects.select_for_update(of=("self",))
        .select_related("run__project")
        .get(pk=export.pk)
    )
    if export.is_active:
        raise ExportRefused(_("The export is still being made; cancel it first."))
    if run := find_user(export):
        words = _(
            "Run #%(number)s starts from this export and is %(state)s; wait for its end or "
            "stop it first."
        )
        values = {"number": run.number, "state": state_look(run.state).label}
        raise ExportRefused(words % values)
    logger.info("Export %s is deleted", export.pk)
    folder, key = export.folder, export.pk
    _note("export.delete", export, actor)
    export.delete()
    _publish(key, export.run.project_id, "deleted")
    transaction.on_commit(lambda: remove_directory(folder), robust=True)


def note_download(export: ModelExport, actor: User, *, is_begun: bool) -> None:
    """Keep who took the weights away: as a download begins, not for each of its later parts.

    Who asks for a later part alone is kept as well: all but the first byte is as good as the whole.
    """
    if is_begun or not was_recorded("export.download", actor, export.pk):
        _note("export.download", export, actor)


def _note(action: str, export: ModelExport, actor: User) -> None:
    """An entry of the audit log about an export."""
    record(
        action,
        actor=actor,
        kind="export",
        key=export.pk,
        label=export.slug,
        project=export.run.project,
        after={"run": export.run.number, "step": export.step, "dtype": export.dtype},
    )


def _publish(
    export_id: UUID, project_id: int | None, state: str, progress: ExportProgress | None = None
) -> None:
    """A hint for the open pages of the project's members."""
    data = {"id": str(export_id), "state": str(state)}
    numbers = {"done": progress.done, "total": progress.total} if progress else {}
    live.publish(live.project_topic("models", project_id), "export", {**data, **numbers})


def find_user(export: ModelExport) -> Run | None:
    """A run that has not ended and starts from the export's folder."""
    ref = str(export.folder.model)
    return (
        Run.objects.filter(spec__model__ref=ref)
        .exclude(state__in=status.TERMINAL)
        .order_by("number")
        .first()
    )


def claim_export(export_id: UUID) -> ExportClaim | None:
    """The right to make an export, for a worker; None when there is nothing to do."""
    if not _take(export_id):
        return None
    export = ModelExport.objects.select_related("run", "checkpoint__run").get(pk=export_id)
    claim = ExportClaim(export.pk, export.attempts, export.run.project_id, export.folder)
    if export.attempts > MOST_ATTEMPTS:
        words = f"The worker that made it was killed {MOST_ATTEMPTS} times."
        advice = "The model may need more memory than there is."
        finish_export(claim, ExportResult(outcome="failed", message=words, advice=advice))
        return None
    try:
        making.prepare_directory(export)
    except ExportRefused as refusal:
        finish_export(claim, ExportResult(outcome="failed", message=refusal.message))
        return None
    except OSError as error:
        words = f"The export's directory cannot be written: {error.strerror}."
        advice = "Free disk space, then make the export again."
        finish_export(claim, ExportResult(outcome="failed", message=words, advice=advice))
        return None
    return claim


@transaction.atomic
def _take(export_id: UUID) -> bool:
    """Mark an export as this worker's, unless somebody makes it or another one now."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [CLAIM_LOCK])
    silent = timezone.now() - SILENT_AFTER
    running = ModelExport.objects.filter(state=State.RUNNING, seen_at__gte=silent)
    if running.exists():
        return False
    waiting = Q(state=State.QUEUED) | Q(state=State.RUNNING, seen_at__lt=silent)
    return bool(
        ModelExport.objects.filter(waiting, pk=export_id).update(
            state=State.RUNNING,
            seen_at=timezone.now(),
            attempts=F("attempts") + 1,
            done=0,
            total=0,
            doing="",
        )
    )


def report_export(claim: ExportClaim, progress: ExportProgress | None) -> bool:
    """Store how far it is; whether the claim still stands."""
    values = (
        {"done": progress.done, "total": progress.total, "doing": progress.message[:100]}
        if progress
        else {}
    )
    with transaction.atomic():
        is_held = bool(_held(claim).update(seen_at=timezone.now(), **values))
        if is_held:
            _publish(claim.export_id, claim.project_id, State.RUNNING, progress)
    return is_held


def finish_export(claim: ExportClaim, result: ExportResult) -> bool:
    """Close an export with what came of it, and let the next one begin.

    Returns whether the claim still stood. A directory that another worker has taken over stays.
    """
    with transaction.atomic():
        is_held = _store(claim, result)
        if is_held:
            _send_next()
    if not ModelExport.objects.standing().filter(pk=claim.export_id).exists():
        remove_directory(claim.folder)
    return is_held


def _store(claim: ExportClaim, result: ExportResult) -> bool:
    """Write the result into the row, while the claim stands."""
    now = timezone.now()
    is_ready = result.outcome == "ready"
    state = State.READY if is_ready else State.FAILED
    finished = _held(claim).update(
        state=state,
        message=result.message.replace("\0", "")[:2000],
        advice=result.advice.replace("\0", "")[:2000],
        files=[file.model_dump() for file in result.files],
        check_result=result.check.model_dump(mode="json") if result.check else None,
        parameters=result.parameters,
        size_bytes=sum(file.size for file in result.files),
        finished_at=now,
        seen_at=now,
        expires_at=now + KEEP if is_ready else None,
    )
    if finished:
        _publish(claim.export_id, claim.project_id, state)
    return bool(finished)


def _held(claim: ExportClaim) -> ExportQuerySet:
    """The row, while the claim stands."""
    return ModelExport.objects.filter(
        pk=claim.export_id, state=State.RUNNING, attempts=claim.attempt
    )


def tend_exports() -> None:
    """For the reaper: send what is stuck again, let go of what has had its time."""
    _send_next()
    for export in ModelExport.objects.overdue():
        if find_user(export) is None:
            overdue = ModelExport.objects.overdue().filter(pk=export.pk)
            overdue.update(state=State.EXPIRED, files=[], check_result=None)
    sweep_directories()


def _send_next() -> None:
    """Send the export whose turn it is: one that its worker left, else the first that waits.

    Sent again each time that the reaper comes by, since a message may be lost; one too many does
    nothing. Nothing is sent while one is being made.
    """
    silent = timezone.now() - SILENT_AFTER
    if ModelExport.objects.filter(state=State.RUNNING, seen_at__gte=silent).exists():
        return
    turn = ModelExport.objects.active().order_by("-state", "created_at").first()
    if turn is not None:
        dispatch.send_export(turn.pk)


def sweep_directories() -> None:
    """Remove directories that belong to no export that stands: expired, cancelled, deleted."""
    root = Path(settings.EXPORTS_DIR)
    found = {path.name: path for path in root.glob("*/*")}
    ids = {name for name in found if _is_id(name)}
    recent = timezone.now() - SILENT_AFTER  # a worker may still be killing its process
    needed = ModelExport.objects.standing() | ModelExport.objects.filter(
        state=State.CANCELLED, finished_at__gt=recent
    )
    kept = {str(pk) for pk in needed.filter(pk__in=ids).values_list("pk", flat=True)}
    for name in ids - kept:
        remove_directory(ExportDir(found[name]))
    for path in root.glob("*/.deleted-*"):  # what a removal that was killed has left
        shutil.rmtree(path, ignore_errors=True)
    for of_run in root.glob("*/"):
        with suppress(OSError):  # not empty
            of_run.rmdir()


def _is_id(name: str) -> bool:
    try:
        return str(UUID(name)) == name
    except ValueError:
        return False


def remove_directory(folder: ExportDir) -> None:
    """Out of sight at once, then off the disk: half a folder must not look like a model."""
    grave = folder.root.with_name(f".deleted-{uuid4().hex}")
    try:
        folder.root.rename(grave)
    except OSError:
        return  # gone already
    shutil.rmtree(grave, ignore_errors=True)
