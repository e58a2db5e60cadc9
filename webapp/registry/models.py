"""Exports: checkpoints made into plain model folders that somebody can download.

The folder lies in EXPORTS_DIR/RUN/EXPORT until it expires, so that its path says whose run's it is;
the row outlives it and says what there was. States:

    queued --> running --> ready --> expired
       |          |
       |          +--> failed        from failed, cancelled and expired a new export is made,
       +----------+--> cancelled     never the same row again
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from training_core.contract.exports import ExportDir
from webapp.accounts.models import User
from webapp.runs.ids import new_uuid7
from webapp.runs.models import Checkpoint, Run

KEEP = timedelta(days=7)
"""How long a finished export stays, unless somebody keeps it."""


class ExportQuerySet(models.QuerySet["ModelExport"]):
    """The questions that are asked about exports."""

    def active(self) -> ExportQuerySet:
        """A worker has them or will have them."""
        return self.filter(state__in=ModelExport.ACTIVE)

    def standing(self) -> ExportQuerySet:
        """Those that another wish for the same would find."""
        return self.filter(state__in=ModelExport.STANDING)

    def overdue(self) -> ExportQuerySet:
        """Ready, and past their time."""
        return self.filter(state=ModelExport.State.READY, expires_at__lt=timezone.now())


class ModelExport(models.Model):
    """One checkpoint in one type of weights, on its way to a folder or as a folder."""

    class State(models.TextChoices):
        """Where it is in its life."""

        QUEUED = "queued"
        RUNNING = "running"
        READY = "ready"
        FAILED = "failed"
        CANCELLED = "cancelled"
        EXPIRED = "expired"

    ACTIVE = (State.QUEUED, State.RUNNING)
    STANDING = (*ACTIVE, State.READY)

    id = models.UUIDField(primary_key=True, default=new_uuid7, editable=False)
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="exports")
    checkpoint = models.ForeignKey(
        Checkpoint, null=True, blank=True, on_delete=models.SET_NULL, related_name="exports"
    )
    """None when the checkpoint's row is gone; `step` and `saved_at` still say which it was."""
    owner = models.ForeignKey(User, on_delete=models.PROTECT, related_name="exports")
    step = models.PositiveIntegerField()
    saved_at = models.DateTimeField()
    """When the checkpoint was saved: a later attempt may save another one at the same step."""
    dtype = models.CharField(max_length=10)
    """float32 or bfloat16."""
    state = models.CharField(max_length=10, choices=State.choices, default=State.QUEUED)
    message = models.TextField(blank=True)
    """Why it failed, in a sentence."""
    advice = models.TextField(blank=True)
    """What to do about it."""
    attempts = models.PositiveSmallIntegerField(default=0)
    """Workers that began it; also the token of the one that has it."""
    done = models.PositiveBigIntegerField(default=0)
    """Bytes handled, of `total`."""
    total = models.PositiveBigIntegerField(default=0)
    doing = models.CharField(max_length=100, blank=True)
    """What its process does now."""
    files = models.JSONField(default=list, blank=True)
    """List of `contract.exports.ExportedFile`."""
    check_result = models.JSONField(null=True, blank=True)
    """`contract.exports.ExportCheck`, where the folder was loaded."""
    parameters = models.PositiveBigIntegerField(default=0)
    size_bytes = models.PositiveBigIntegerField(default=0)
    """All files together."""
    created_at = models.DateTimeField(default=timezone.now)
    seen_at = models.DateTimeField(default=timezone.now)
    """When its worker was last heard of."""
    finished_at = models.DateTimeField(null=True, blank=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    """When the folder is removed; None while it is made, and for one that is kept."""

    objects = ExportQuerySet.as_manager()

    class Meta:
        ordering = ("-created_at",)
        constraints = (
            models.UniqueConstraint(
                fields=("run", "step", "saved_at", "dtype"),
                condition=Q(state__in=("queued", "running", "ready")),
                name="export_one_of_a_kind",
            ),
        )
        indexes = (models.Index(fields=("state", "seen_at"), name="exports_waiting"),)

    def __str__(self) -> str:
        return f"export of step {self.step} of {self.run_id} in {self.dtype}"

    @property
    def folder(self) -> ExportDir:
        """Its directory."""
        return ExportDir(Path(settings.EXPORTS_DIR) / str(self.run_id) / str(self.id))

    @property
    def slug(self) -> str:
        """What the downloaded folder is called."""
        return f"temper-run-{self.run.number}-step-{self.step}-{self.dtype}"

    @property
    def is_active(self) -> bool:
        """Whether a worker has it or will have it."""
        return self.state in self.ACTIVE

    @property
    def is_ready(self) -> bool:
        """Whether it can be downloaded."""
        return self.state == self.State.READY

    @property
    def is_kept(self) -> bool:
        """Whether it stays until somebody deletes it."""
        return self.is_ready and self.expires_at is None
