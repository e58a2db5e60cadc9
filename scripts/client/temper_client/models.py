"""What the server answers with, typed. A test of Temper holds them against its OpenAPI document.

Fields that a newer server adds are ignored, so that an older client goes on working. Numbers that
are not finite come as the words `nan`, `inf` and `-inf` and are floats here.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, BeforeValidator, ConfigDict

WORDS = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}


def _number(value: Any) -> Any:
    """A word as the number that it stands for."""
    return WORDS.get(value, value) if isinstance(value, str) else value


Number = Annotated[float, BeforeValidator(_number)]


class Answer(BaseModel):
    """Any answer."""

    model_config = ConfigDict(extra="ignore", frozen=True, protected_namespaces=())


class Phase(Answer):
    """What the trainer does inside the current step."""

    phase: str
    step: int
    done: int
    total: int
    unit: str
    tokens_per_s: Number | None


class Run(Answer):
    """One run as it is now."""

    id: UUID
    number: int
    name: str
    project: str
    owner: str
    state: str
    cause: str
    message: str
    advice: str
    is_terminal: bool
    step: int
    total_steps: int
    stage: str
    phase: Phase | None
    eta_s: Number | None
    latest: dict[str, Number | str]
    preset: str
    parent: int | None
    attempt: int
    created_at: datetime
    queued_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    archived_at: datetime | None


class RunPage(Answer):
    """One page of runs."""

    items: list[Run]
    next_cursor: int | None


class Check(Answer):
    """What a launch would do."""

    name: str
    project: str
    steps: int
    rollouts: int
    most_tokens: int
    disk_bytes: int
    waiting: int
    slots: int
    warnings: list[str]


class LogPiece(Answer):
    """A part of a trainer's console."""

    attempt: int
    text: str
    start: int
    end: int
    size: int


class Version(Answer):
    """A frozen state of a dataset."""

    id: UUID
    number: int
    content_hash: str
    record_count: int
    train_count: int
    held_out_count: int
    duplicate_count: int
    created_at: datetime


class Dataset(Answer):
    """A named line of versions."""

    id: int
    name: str
    project: str
    owner: str
    created_at: datetime
    versions: list[Version]


class DatasetPage(Answer):
    """One page of datasets."""

    items: list[Dataset]
    next_cursor: int | None


class RowError(Answer):
    """What is wrong with one row of a file."""

    row: int
    column: str
    code: str
    message: str


class Import(Answer):
    """One uploaded file on its way to a version."""

    id: UUID
    state: Literal["uploaded", "queued", "running", "done", "rejected"]
    name: str
    project: str
    owner: str
    file_name: str
    size_bytes: int
    done: int
    total: int
    row_count: int
    error_count: int
    message: str
    errors: list[RowError]
    dataset: int | None
    version: Version | None
    created_at: datetime
    finished_at: datetime | None


class Checkpoint(Answer):
    """A saved state of a run."""

    id: int
    step: int
    attempt: int
    stage: str
    size_bytes: int
    is_best: bool
    pass_at_1: Number | None
    created_at: datetime
    removed_at: datetime | None


class CheckpointList(Answer):
    """Checkpoints of a run."""

    items: list[Checkpoint]


class ExportedFile(Answer):
    """One file of an exported folder."""

    name: str
    size: int
    sha256: str


class ExportCheck(Answer):
    """What loading the exported folder has shown."""

    tokens: int
    largest_difference: Number
    same_choice: int


class Export(Answer):
    """A checkpoint on its way to a plain model folder, or as one."""

    id: UUID
    run: int
    project: str
    step: int
    dtype: str
    owner: str
    state: Literal["queued", "running", "ready", "failed", "cancelled", "expired"]
    message: str
    advice: str
    doing: str
    done: int
    total: int
    folder: str
    parameters: int
    size_bytes: int
    files: list[ExportedFile]
    check: ExportCheck | None
    created_at: datetime
    finished_at: datetime | None
    expires_at: datetime | None


class ExportList(Answer):
    """Exports of a run."""

    items: list[Export]


class Membership(Answer):
    """A project that the caller is in."""

    slug: str
    name: str
    role: str
    is_archived: bool


class Caller(Answer):
    """Who a token acts for."""

    user: str
    is_superuser: bool
    token: str
    scopes: list[str]
    expires_at: datetime
    projects: list[Membership]


class Preset(Answer):
    """A whole spec that is known to work."""

    slug: str
    title: str
    teaches: str
    expect: str
    minutes: float
    spec: dict[str, Any]


class PresetList(Answer):
    """All presets."""

    items: list[Preset]


class FieldProblem(Answer):
    """What is wrong with one field."""

    field: str
    message: str
    line: int | None = None


class ProblemDocument(Answer):
    """An error, as RFC 9457 writes them."""

    title: str
    status: int
    detail: str
    errors: list[FieldProblem] = []


MODEL_OF_SCHEMA: dict[str, type[Answer]] = {
    "PhaseOut": Phase,
    "RunOut": Run,
    "RunPage": RunPage,
    "CheckOut": Check,
    "LogPiece": LogPiece,
    "VersionOut": Version,
    "DatasetOut": Dataset,
    "DatasetPage": DatasetPage,
    "RowErrorOut": RowError,
    "ImportOut": Import,
    "CheckpointOut": Checkpoint,
    "CheckpointList": CheckpointList,
    "ExportedFileOut": ExportedFile,
    "ExportCheckOut": ExportCheck,
    "ExportOut": Export,
    "ExportList": ExportList,
    "MembershipOut": Membership,
    "CallerOut": Caller,
    "PresetOut": Preset,
    "PresetList": PresetList,
    "FieldProblem": FieldProblem,
    "ProblemDocument": ProblemDocument,
}
"""Which schema of the OpenAPI document each of them reads."""
