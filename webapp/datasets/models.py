"""Datasets: uploads, the imports that check them, and the frozen versions that runs train on.

A version appears only when every row of its file was good; it never changes after that.
"""

from __future__ import annotations

import uuid
from typing import Any

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.db import models

from webapp.accounts.models import Project, User, main_project_pk
from webapp.accounts.roles import Right, projects_where
from webapp.datasets.sentences import in_own_language


class DatasetQuerySet(models.QuerySet["Dataset"]):
    """The questions that are asked about datasets."""

    def visible_to(self, user: User | AnonymousUser) -> DatasetQuerySet:
        """Those of the projects that the user may see."""
        return self.filter(project__in=projects_where(user, Right.VIEW))


class Dataset(models.Model):
    """A named line of versions."""

    name = models.CharField(max_length=120)
    project = models.ForeignKey(
        Project, on_delete=models.PROTECT, related_name="datasets", default=main_project_pk
    )
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="datasets"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = DatasetQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "name"], name="dataset_names_differ")
        ]

    def __str__(self) -> str:
        return self.name


class DatasetVersion(models.Model):
    """Frozen records. While `building`, an import is still writing it and nobody may use it."""

    class State(models.TextChoices):
        """Where it is in its life."""

        BUILDING = "building"
        READY = "ready"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    dataset = models.ForeignKey(Dataset, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    content_hash = models.CharField(max_length=80)
    record_count = models.PositiveIntegerField(default=0)
    held_out_count = models.PositiveIntegerField(default=0)
    duplicate_count = models.PositiveIntegerField(default=0)
    state = models.CharField(max_length=10, choices=State.choices, default=State.BUILDING)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["dataset", "number"], name="version_numbers_differ")
        ]

    def __str__(self) -> str:
        return f"{self.dataset} v{self.number}"

    @property
    def train_count(self) -> int:
        """Records on the training side."""
        return self.record_count - self.held_out_count


class DatasetRecord(models.Model):
    """One record of a version; `payload` is a `contract.domains.DatasetRecord`."""

    version = models.ForeignKey(DatasetVersion, on_delete=models.CASCADE, related_name="records")
    index = models.PositiveIntegerField()
    record_id = models.CharField(max_length=80)
    split = models.CharField(max_length=10)
    payload = models.JSONField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["version", "index"], name="one_record_a_place"),
            models.UniqueConstraint(fields=["version", "record_id"], name="no_record_twice"),
        ]

    def __str__(self) -> str:
        return f"record {self.index} of {self.version_id}"


class DatasetImport(models.Model):
    """One uploaded file on its way to a version."""

    class State(models.TextChoices):
        """Uploaded (columns to choose), queued, running, then done or rejected."""

        UPLOADED = "uploaded"
        QUEUED = "queued"
        RUNNING = "running"
        DONE = "done"
        REJECTED = "rejected"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="imports"
    )
    project = models.ForeignKey(
        Project, on_delete=models.PROTECT, related_name="imports", default=main_project_pk
    )
    dataset = models.ForeignKey(
        Dataset, on_delete=models.CASCADE, related_name="imports", null=True, blank=True
    )
    version = models.OneToOneField(
        DatasetVersion,
        on_delete=models.SET_NULL,
        related_name="made_by",
        null=True,
        blank=True,
    )
    path = models.CharField(max_length=255)  # below UPLOADS_DIR
    file_name = models.CharField(max_length=255)
    size_bytes = models.PositiveBigIntegerField()
    name = models.CharField(max_length=120, blank=True)
    mapping = models.JSONField(default=dict)
    state = models.CharField(max_length=10, choices=State.choices, default=State.UPLOADED)
    done = models.PositiveBigIntegerField(default=0)
    total = models.PositiveBigIntegerField(default=0)
    row_count = models.PositiveIntegerField(default=0)
    error_count = models.PositiveIntegerField(default=0)
    errors = models.JSONField(default=list)
    message = models.TextField(blank=True)
    message_parts = models.JSONField(default=dict, blank=True)  # as `sentences.parts_of` makes them
    attempts = models.PositiveSmallIntegerField(default=0)  # workers that began it
    created_at = models.DateTimeField(auto_now_add=True)
    seen_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [models.Index(fields=["state", "seen_at"], name="imports_waiting")]

    def __str__(self) -> str:
        return f"import of {self.file_name}"

    @property
    def is_active(self) -> bool:
        """Whether a worker has it or will have it."""
        return self.state in {self.State.QUEUED, self.State.RUNNING}

    @property
    def verdict(self) -> str:
        """Why it was rejected, in the language of who reads it."""
        return in_own_language(self.message, self.message_parts)

    @property
    def row_errors(self) -> list[dict[str, Any]]:
        """What is wrong in the rows, in the language of who reads it."""
        return [
            {**error, "message": in_own_language(error["message"], error.get("parts", {}))}
            for error in self.errors
        ]
