"""Datasets and imports as programs see them."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from webapp.api.outputs.document import Document
from webapp.datasets.forms import MappingForm
from webapp.datasets.models import Dataset, DatasetImport, DatasetRecord, DatasetVersion

SHOWN_ERRORS = 100


class VersionOut(Document):
    """A frozen state of a dataset."""

    id: UUID
    """What a spec names as `dataset_version`."""
    number: int
    content_hash: str
    record_count: int
    train_count: int
    held_out_count: int
    duplicate_count: int
    """Rows that were left out because they stood there twice."""
    created_at: datetime


class DatasetOut(Document):
    """A named line of versions."""

    id: int
    name: str
    project: str
    """Slug of the project that it belongs to."""
    owner: str
    """User name of who made it."""
    created_at: datetime
    versions: list[VersionOut]
    """Versions that runs may use, the newest first."""


class DatasetPage(Document):
    """One page of datasets, the newest first."""

    items: list[DatasetOut]
    next_cursor: int | None
    """Give it as `cursor` for the next page; null on the last."""


class RecordOut(Document):
    """One record of a version."""

    index: int
    """Place in the version, from 0."""
    record_id: str
    """Hash of its content."""
    split: str
    """`train` or `held_out`."""
    payload: dict[str, Any]
    """Messages, answer and demonstration."""


class RecordPage(Document):
    """One page of records in their order."""

    version: VersionOut
    items: list[RecordOut]
    next_cursor: int | None
    """Give it as `cursor` for the next page; null on the last."""


class ColumnsOut(Document):
    """What an uploaded file holds, and the likeliest mapping of it."""

    columns: list[str]
    prompt: str
    """Guess at the column of the prompt; empty where nothing fits."""
    answer: str
    """Guess at the column of the right answer; empty where nothing fits."""
    demonstration: str
    """Guess at the column of a worked reply; empty for none."""


class RowErrorOut(Document):
    """What is wrong with one row."""

    row: int
    """From 1."""
    column: str
    code: str
    message: str


class ImportOut(Document):
    """One uploaded file on its way to a version."""

    id: UUID
    state: DatasetImport.State
    """uploaded (columns to choose), queued, running, done or rejected."""
    name: str
    """Dataset that it becomes a version of; empty until it is chosen."""
    project: str
    """Slug of the project that it belongs to."""
    owner: str
    """User name of who uploaded it."""
    file_name: str
    size_bytes: int
    done: int
    """Units of work done, of `total`."""
    total: int
    row_count: int
    error_count: int
    message: str
    """Why it was rejected."""
    errors: list[RowErrorOut]
    """The first 100 bad rows."""
    columns: ColumnsOut | None
    """While it waits for its columns, what there is to choose from."""
    dataset: int | None
    """Id of the dataset, once it is done."""
    version: VersionOut | None
    """The version that it became."""
    created_at: datetime
    finished_at: datetime | None


class StartImport(Document):
    """Which column is what."""

    name: str
    """Dataset that it becomes a version of; a new one unless it is there."""
    prompt: str
    """Column of the prompt: a text, or a list of chat turns."""
    answer: str
    """Column of the right answer."""
    demonstration: str = ""
    """Column of a worked reply; empty for none."""
    held_out_percent: int = 20
    """Share of prompts kept for evaluation, from 1 to 50 percent."""
    delimiter: str = ""
    """Between the cells of a CSV file: `,`, `;`, a tab or `|`; empty to have it found out."""

    def posted(self) -> dict[str, str]:
        """As the mapping form sends it."""
        return {name: str(value) for name, value in self.model_dump().items()}


def version_out(version: DatasetVersion) -> VersionOut:
    """The answer for a version."""
    return VersionOut(**{name: getattr(version, name) for name in VersionOut.model_fields})


def dataset_out(dataset: Dataset, versions: list[DatasetVersion]) -> DatasetOut:
    """The answer for a dataset with its usable versions."""
    return DatasetOut(
        id=dataset.pk,
        name=dataset.name,
        project=dataset.project.slug,
        owner=dataset.owner.get_username(),
        created_at=dataset.created_at,
        versions=[version_out(version) for version in versions],
    )


def record_out(record: DatasetRecord) -> RecordOut:
    """The answer for a record."""
    return RecordOut(**{name: getattr(record, name) for name in RecordOut.model_fields})


def import_out(job: DatasetImport) -> ImportOut:
    """The answer for an import."""
    same = {name: getattr(job, name) for name in ImportOut.model_fields if name not in _MADE}
    errors = [
        RowErrorOut(**{name: error[name] for name in RowErrorOut.model_fields})
        for error in job.errors[:SHOWN_ERRORS]
    ]
    return ImportOut(
        **same,
        project=job.project.slug,
        owner=job.owner.get_username(),
        errors=errors,
        columns=_columns(job) if job.state == DatasetImport.State.UPLOADED else None,
        dataset=job.dataset_id,
        version=version_out(job.version) if job.version is not None else None,
    )


_MADE = {"project", "owner", "errors", "columns", "dataset", "version"}


def _columns(job: DatasetImport) -> ColumnsOut | None:
    """What the mapping page would offer."""
    form = MappingForm.opening(job)
    if form.layout is None:
        return None
    mapping = form.mapping
    return ColumnsOut(
        columns=form.columns,
        prompt=mapping.prompt,
        answer=mapping.answer,
        demonstration=mapping.demonstration,
    )
