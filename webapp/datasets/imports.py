"""Run one import: check every row, and only when all are good write them as a new version.

Called by `services.run_import` in a worker of the cpu queue. The file is read twice: once to judge
it, once to write it, so that memory stays small and nothing of a bad file is ever in the database.
A version in the making is marked `building`; what a killed import left is removed by the next try.
"""

from __future__ import annotations

import hashlib
import logging
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext_noop as _

from training_core.contract.domains import DatasetRecord
from webapp.accounts.roles import Right, may
from webapp.audit.record import record as write_entry
from webapp.datasets.layout import Layout, detect, read_rows
from webapp.datasets.mapping import Mapping, make_record
from webapp.datasets.models import Dataset, DatasetImport, DatasetVersion
from webapp.datasets.models import DatasetRecord as RecordRow
from webapp.datasets.rows import FileError, Row, RowError, cut_text
from webapp.datasets.sentences import Sentence, parts_of
from webapp.datasets.sides import FEWEST_PROMPTS, Sides
from webapp.metrics import live

logger = logging.getLogger(__name__)
KEPT_ERRORS = 1000
BATCH = 1000
REPORT_EVERY_S = 0.5
State = DatasetImport.State


@dataclass
class Survey:
    """What the first reading of a file found."""

    sides: Sides
    rows: int = 0
    duplicates: int = 0
    error_count: int = 0
    errors: list[RowError] = field(default_factory=list)
    seen: set[bytes] = field(default_factory=set)
    """Ids of the different records."""


def import_file(job: DatasetImport) -> None:
    """Turn a claimed import into `done` with a version, or into `rejected` with reasons."""
    try:
        path = upload_path(job)
        mapping = Mapping(**{k: v for k, v in job.mapping.items() if k in Mapping._fields})
        layout = detect(path, job.file_name, job.mapping.get("delimiter", ""))
        survey = survey_file(job, path, layout, mapping)
        job.row_count, job.error_count = survey.rows, survey.error_count
        job.errors = [error.stored() for error in survey.errors]
        if verdict := _verdict(survey):
            _finish(job, State.REJECTED, verdict)
        else:
            _write(job, path, layout, mapping, survey)
    except FileError as error:
        _finish(job, State.REJECTED, error.message)
    except OSError as error:
        text = _("The uploaded file cannot be read: %(why)s.")
        _finish(job, State.REJECTED, Sentence(text, why=str(error.strerror)))
    except Exception as error:
        _log(job, error)
        text = _(
            "The import failed for a reason of ours (%(name)s), so nothing was imported. The "
            "worker's log has the details."
        )
        reject_import(job, Sentence(text, name=type(error).__name__))


def reject_import(job: DatasetImport, message: str) -> None:
    """Close an import that went wrong; what it found is dropped, for it may be what went wrong."""
    job.errors, job.row_count, job.error_count, job.dataset = [], 0, 0, None
    _finish(job, State.REJECTED, message)


def _log(job: DatasetImport, error: Exception) -> None:
    """The traceback without the values: a database's error may quote megabytes of the file."""
    trace = "".join(traceback.format_tb(error.__traceback__))
    words = cut_text(str(error))
    logger.error("Import %s failed: %s: %s\n%s", job.pk, type(error).__name__, words, trace)


def survey_file(job: DatasetImport, path: Path, layout: Layout, mapping: Mapping) -> Survey:
    """Read the whole file and judge every row."""
    survey = Survey(Sides(mapping.held_out_percent))
    report = _Reporter(job, base=0)
    for item in read_rows(path, layout):
        survey.rows += 1
        made = [item] if isinstance(item, RowError) else make_record(item, mapping)
        report.at(item.offset if isinstance(item, Row) else report.offset)
        if isinstance(made, DatasetRecord):
            _count(survey, made)
        else:
            survey.error_count += 1
            kept = made[: max(0, KEPT_ERRORS - len(survey.errors))]
            survey.errors.extend(error.shortened() for error in kept)
    survey.sides.settle()
    return survey


def upload_path(job: DatasetImport) -> Path:
    """Where the upload lies."""
    return Path(settings.UPLOADS_DIR) / job.path


def _count(survey: Survey, record: DatasetRecord) -> None:
    """Count a good record once, however often it stands in the file."""
    key = bytes.fromhex(record.record_id)
    survey.duplicates += key in survey.seen
    survey.seen.add(key)
    survey.sides.see(record.messages)


def _verdict(survey: Survey) -> str:
    """Why nothing is imported; empty when the file is good."""
    if survey.error_count:
        counts = {"bad": f"{survey.error_count:,}", "rows": f"{survey.rows:,}"}
        return Sentence(_bad_rows(survey), **counts)
    if not survey.rows:
        return Sentence(_("The file has a header but no rows."))
    if not survey.sides.enough:
        found = len(survey.sides.ranks)
        one, many = (
            _(
                "The file has %(found)s different prompt; a version needs at least %(fewest)s, to "
                "have both a training and a held-out side."
            ),
            _(
                "The file has %(found)s different prompts; a version needs at least %(fewest)s, to "
                "have both a training and a held-out side."
            ),
        )
        return Sentence(one if found == 1 else many, found=found, fewest=FEWEST_PROMPTS)
    return ""


def _bad_rows(survey: Survey) -> str:
    """The verdict on a file with bad rows, by their number."""
    if survey.rows == 1:
        return _(
            "%(bad)s of %(rows)s row is bad, so nothing was imported. Mend it and upload the file "
            "again."
        )
    if survey.error_count == 1:
        return _(
            "%(bad)s of %(rows)s rows is bad, so nothing was imported. Mend it and upload the "
            "file again."
        )
    return _(
        "%(bad)s of %(rows)s rows are bad, so nothing was imported. Mend them and upload the file "
        "again."
    )


def _write(
    job: DatasetImport, path: Path, layout: Layout, mapping: Mapping, survey: Survey
) -> None:
    """Second reading: records in batches under a building version, then ready in one stroke."""
    version = _open_version(job)
    report = _Reporter(job, base=job.size_bytes)
    digest = hashlib.sha256()
    count = held_out = 0
    batch: list[RecordRow] = []
    for record, offset in _records(path, layout, mapping, survey):
        digest.update(record_line(record))
        held_out += record.split == "held_out"
        batch.append(_row(version, count, record))
        count += 1
        report.at(offset)
        if len(batch) == BATCH:
            RecordRow.objects.bulk_create(batch)
            batch = []
    RecordRow.objects.bulk_create(batch)
    with transaction.atomic():
        version.content_hash = digest.hexdigest()
        version.record_count, version.held_out_count = count, held_out
        version.duplicate_count = survey.duplicates
        version.state = DatasetVersion.State.READY
        version.save()
        job.version, job.dataset = version, version.dataset
        write_entry(
            "dataset.version",
            actor=job.owner,
            kind="dataset",
            key=version.dataset.pk,
            label=str(version),
            project=job.project,
            after={"records": count, "held out": held_out, "hash": version.content_hash},
        )
        _finish(job, State.DONE, "")


def _records(
    path: Path, layout: Layout, mapping: Mapping, survey: Survey
) -> Iterator[tuple[DatasetRecord, int]]:
    """Each different record once, on its side, with the bytes read so far."""
    left = set(survey.seen)
    for item in read_rows(path, layout):
        made = make_record(item, mapping) if isinstance(item, Row) else None
        if not isinstance(made, DatasetRecord) or not isinstance(item, Row):
            raise FileError(Sentence(_("The uploaded file changed while it was imported.")))
        key = bytes.fromhex(made.record_id)
        if key in left:
            left.discard(key)
            side = survey.sides.side(made.messages)
            yield made.model_copy(update={"split": side}), item.offset


def record_line(record: DatasetRecord) -> bytes:
    """A record as it stands in a run directory; a version's hash is over these lines."""
    return record.model_dump_json().encode() + b"\n"


def _row(version: DatasetVersion, index: int, record: DatasetRecord) -> RecordRow:
    """The database row of a record."""
    return RecordRow(
        version=version,
        index=index,
        record_id=record.record_id,
        split=record.split,
        payload=record.model_dump(mode="json"),
    )


def _open_version(job: DatasetImport) -> DatasetVersion:
    """The next version of the dataset, in the making; leftovers of a killed try are removed."""
    with transaction.atomic():
        if job.version_id is not None:
            DatasetVersion.objects.filter(
                pk=job.version_id, state=DatasetVersion.State.BUILDING
            ).delete()
        dataset, _is_new = Dataset.objects.get_or_create(
            project=job.project, name=job.name, defaults={"owner": job.owner}
        )
        dataset = Dataset.objects.select_for_update().get(pk=dataset.pk)
        newest = dataset.versions.order_by("-number").values_list("number", flat=True).first()
        version = DatasetVersion.objects.create(dataset=dataset, number=(newest or 0) + 1)
        job.version = version
        DatasetImport.objects.filter(pk=job.pk).update(version=version)
    return version


def _finish(job: DatasetImport, state: str, message: str) -> None:
    """Close the import and tell open pages."""
    if state == State.REJECTED and job.version is not None:
        job.version.delete()
        job.version = None
    message = cut_text(message)
    job.state, job.message, job.finished_at = state, str(message), timezone.now()
    job.message_parts = parts_of(message)
    job.done = job.total
    job.save()
    _publish(job)


class _Reporter:
    """Writes progress at most twice a second, and shows the reaper that the import lives."""

    def __init__(self, job: DatasetImport, base: int) -> None:
        self.job, self.base = job, base
        self.next_at = 0.0
        self.offset = 0

    def at(self, offset: int) -> None:
        """So many bytes of this reading are done."""
        self.offset = offset
        now = time.monotonic()
        if now < self.next_at:
            return
        self.next_at = now + REPORT_EVERY_S
        self.job.done, self.job.seen_at = self.base + offset, timezone.now()
        self.job.save(update_fields=["done", "seen_at"])
        _publish(self.job)


def _publish(job: DatasetImport) -> None:
    """A hint for open pages of who may see the import: all members once it is done."""
    data: dict[str, Any] = {
        "id": str(job.pk),
        "state": job.state,
        "done": job.done,
        "total": job.total,
    }
    if job.state == State.DONE:
        parts = {""}
    else:
        parts = {live.CURATORS}
        if not may(job.owner, Right.CHANGE_DATASETS, job.project):
            parts.add(live.owner_part(job.owner_id))
    for part in sorted(parts):
        live.publish(live.project_topic("datasets", job.project_id, part), "import", data)
