"""What other parts do with datasets: upload, import, find a version, write it for a run.

Called by this app's views, by `webapp.lifecycle` (imports in a worker, versions at a run's claim)
and by the launch page.
"""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Iterable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q, TextField
from django.db.models.functions import Cast, Length
from django.utils import timezone
from django.utils.translation import gettext_noop as _

from training_core.contract.domains import DatasetRecord
from training_core.contract.rundir import fsync_directory
from webapp.accounts.models import Project, User
from webapp.audit.record import record
from webapp.datasets import dispatch
from webapp.datasets.imports import import_file, record_line, reject_import
from webapp.datasets.mapping import Mapping
from webapp.datasets.models import DatasetImport, DatasetVersion
from webapp.datasets.sentences import Sentence

T = TypeVar("T")
SILENT_AFTER = timedelta(seconds=60)
MOST_ATTEMPTS = 3
LONGEST_SAMPLE_CHARS = 20_000
"""Of a record's JSON, where samples are shown or tried."""
KILLED = Sentence(
    _(
        "The worker that read the file was killed %(times)s times, so nothing was imported. The "
        "file may need more memory than there is: split it, or try again."
    ),
    times=MOST_ATTEMPTS,
)
State = DatasetImport.State


class DatasetChangedError(RuntimeError):
    """A version's records are not those that its hash was taken from."""


def store_upload(
    owner: User, file_name: str, chunks: Iterable[bytes], project: Project | None = None
) -> DatasetImport:
    """Write an upload to disk, whole, and open an import for it that waits for its columns.

    Without a project it is one of the main project.
    """
    folder = Path(settings.UPLOADS_DIR)
    folder.mkdir(parents=True, exist_ok=True)
    suffix = "".join(c for c in Path(file_name).suffix.lower() if c == "." or c.isalnum())
    name = f"{uuid.uuid4()}{suffix[:8]}"
    aside = folder / f".tmp-{name}"
    size = 0
    try:
        with aside.open("wb") as file:
            for chunk in chunks:
                size += file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
        aside.rename(folder / name)
    finally:
        aside.unlink(missing_ok=True)
    return _open_import(owner, project or Project.objects.main(), name, file_name, size)


@transaction.atomic
def _open_import(
    owner: User, project: Project, path: str, file_name: str, size: int
) -> DatasetImport:
    """The row of an upload, with its entry in the audit log."""
    job = DatasetImport.objects.create(
        owner=owner,
        project=project,
        path=path,
        file_name=file_name[-255:],
        size_bytes=size,
        total=2 * size,
    )
    _note("dataset.upload", job, owner, after={"file": job.file_name, "bytes": size})
    return job


def _note(action: str, job: DatasetImport, actor: User, after: dict[str, Any]) -> None:
    """An entry of the audit log about an import."""
    label = job.name or job.file_name
    record(
        action,
        actor=actor,
        kind="import",
        key=job.pk,
        label=label,
        project=job.project,
        after=after,
    )


def discard_upload(job: DatasetImport) -> None:
    """Forget an upload that is no file we read."""
    (Path(settings.UPLOADS_DIR) / job.path).unlink(missing_ok=True)
    with transaction.atomic():
        _note("dataset.discard", job, job.owner, after={"file": job.file_name})
        job.delete()


@transaction.atomic
def start_import(
    job: DatasetImport, name: str, mapping: Mapping, delimiter: str, actor: User | None = None
) -> bool:
    """Queue an import under its mapping; False when it was queued before.

    Without an actor its owner did it.
    """
    values = {**mapping._asdict(), "delimiter": delimiter}
    moved = DatasetImport.objects.filter(
        pk=job.pk, state__in=[State.UPLOADED, State.REJECTED]
    ).update(
        state=State.QUEUED,
        name=name,
        mapping=values,
        seen_at=timezone.now(),
        done=0,
        row_count=0,
        error_count=0,
        errors=[],
        message="",
        message_parts={},
        attempts=0,
        finished_at=None,
    )
    if moved:
        _note("dataset.import", job, actor or job.owner, after={"name": name, **values})
        dispatch.send_import(job.pk)
    return bool(moved)


def run_import(import_id: UUID) -> None:
    """Do the import, in a worker. A second delivery of the same import does nothing.

    An import that nobody finished in `MOST_ATTEMPTS` tries is rejected: its file kills workers.
    """
    silent = timezone.now() - SILENT_AFTER
    claimed = DatasetImport.objects.filter(
        Q(state=State.QUEUED) | Q(state=State.RUNNING, seen_at__lt=silent), pk=import_id
    ).update(state=State.RUNNING, seen_at=timezone.now(), done=0, attempts=F("attempts") + 1)
    if not claimed:
        return
    job = DatasetImport.objects.select_related("owner", "project", "version").get(pk=import_id)
    if job.attempts > MOST_ATTEMPTS:
        reject_import(job, KILLED)
    else:
        import_file(job)


def requeue_silent_imports() -> int:
    """Send every import again that waits or is claimed but has been silent for a minute.

    For the reaper: the message may be lost, the worker dead. Returns how many were sent.
    """
    silent = timezone.now() - SILENT_AFTER
    waiting = DatasetImport.objects.filter(
        state__in=[State.QUEUED, State.RUNNING], seen_at__lt=silent
    )
    for job in waiting:
        dispatch.send_import(job.pk)
    return len(waiting)


def find_version(version_id: str | UUID) -> DatasetVersion | None:
    """A version that runs may use, or None: unknown, malformed or still in the making."""
    try:
        key = UUID(str(version_id))
    except ValueError:
        return None
    return (
        DatasetVersion.objects.filter(pk=key, state=DatasetVersion.State.READY)
        .select_related("dataset__project")
        .first()
    )


def sample_answers(version: DatasetVersion, most: int) -> list[str]:
    """Answers of up to `most` records, spread evenly over the version."""
    stride = max(1, -(-version.record_count // most))
    rows = version.records.annotate(place=F("index") % stride).filter(place=0).order_by("index")
    return [str(answer) for answer in rows.values_list("payload__answer", flat=True)[:most]]


def sample_records(version: DatasetVersion, most: int) -> list[DatasetRecord]:
    """Up to `most` training records, spread evenly over the version; none of the longest ones.

    A record of megabytes would be shown to nobody and held in memory by many.
    """
    stride = max(1, -(-version.record_count // (2 * most)))
    short = version.records.filter(split="train").annotate(
        place=F("index") % stride, size=Length(Cast("payload", TextField()))
    )
    short = short.filter(size__lte=LONGEST_SAMPLE_CHARS).order_by("index")
    rows = list(short.filter(place=0)[: 2 * most]) or list(short[:most])
    return [DatasetRecord.model_validate(row.payload) for row in spread(rows, most)]


def spread(items: Sequence[T], most: int) -> list[T]:
    """Up to `most` of them, at even distances, the first one included."""
    count = min(most, len(items))
    return [items[place * len(items) // count] for place in range(count)]


def write_version(version_id: str | UUID, path: Path) -> None:
    """Write a version as DatasetRecord JSONL, whole or not at all.

    Raises DatasetVersion.DoesNotExist, or DatasetChangedError when the records do not have the hash
    that the version was frozen with.
    """
    version = find_version(version_id)
    if version is None:
        raise DatasetVersion.DoesNotExist(f"There is no dataset version {version_id}.")
    digest = hashlib.sha256()
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".tmp-{path.name}-{os.getpid()}")
    payloads = version.records.order_by("index").values_list("payload", flat=True)
    with aside.open("wb") as file:
        for payload in payloads.iterator(chunk_size=2000):
            line = record_line(DatasetRecord.model_validate(payload))
            digest.update(line)
            file.write(line)
        file.flush()
        os.fsync(file.fileno())
    if digest.hexdigest() != version.content_hash:
        aside.unlink()
        raise DatasetChangedError(f"The records of {version} are not those it was frozen with.")
    aside.rename(path)
    fsync_directory(path.parent)
