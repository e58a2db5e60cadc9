"""Steps under glass and tryouts: who asked for one, where it is, and where its files lie.

The row is the truth of who and whether; what came out lies in the directory
(`training_core.contract.glass`). States change in `services` (people) and `claims` (workers) alone,
each by a guarded update: waiting -> running -> done | failed | cancelled, and waiting -> cancelled;
a step whose worker went silent goes back to waiting.
"""

from __future__ import annotations

from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.db import models
from django.db.models import Q
from django.utils import timezone

from training_core.contract.glass import REQUEST, GlassDir, GlassSpec
from training_core.contract.tryout import TryoutSpec
from webapp.accounts.models import Project, User, main_project_pk
from webapp.accounts.roles import Right, projects_where
from webapp.datasets.models import DatasetVersion
from webapp.runs.ids import new_uuid7
from webapp.runs.models import Checkpoint, Run


class GlassQuerySet(models.QuerySet["GlassStep"]):
    """The questions that are asked about steps under glass."""

    def visible_to(self, user: User | AnonymousUser) -> GlassQuerySet:
        """Those of the projects that the user may see."""
        return self.filter(project__in=projects_where(user, Right.VIEW))

    def steps(self) -> GlassQuerySet:
        """Steps alone."""
        return self.filter(kind=GlassStep.Kind.STEP)

    def tryouts_of(self, version: DatasetVersion) -> GlassQuerySet:
        """What base models tried on rows of a dataset version, the newest first."""
        return self.filter(kind=GlassStep.Kind.TRYOUT, version=version).order_by("-id")


class GlassStep(models.Model):
    """One group and one gradient step, on a copy of some weights.

    A tryout of a base model on rows of a dataset is a row of the same table: it lives, waits and
    ends like a step, and differs in its spec and its result alone.
    """

    class Kind(models.TextChoices):
        """What is asked for."""

        STEP = "step"
        TRYOUT = "tryout"

    class State(models.TextChoices):
        """Where it is in its life."""

        WAITING = "waiting"
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"
        CANCELLED = "cancelled"

    id = models.UUIDField(primary_key=True, default=new_uuid7, editable=False)
    kind = models.CharField(max_length=10, choices=Kind.choices, default=Kind.STEP)
    owner = models.ForeignKey(User, on_delete=models.PROTECT, related_name="glass_steps")
    project = models.ForeignKey(
        Project, on_delete=models.PROTECT, related_name="glass_steps", default=main_project_pk
    )
    """Who belongs to it may see the step."""
    run = models.ForeignKey(
        Run, null=True, blank=True, on_delete=models.SET_NULL, related_name="glass_steps"
    )
    """Run of the checkpoint; empty for a base model."""
    checkpoint = models.ForeignKey(
        Checkpoint, null=True, blank=True, on_delete=models.SET_NULL, related_name="glass_steps"
    )
    version = models.ForeignKey(
        DatasetVersion, null=True, blank=True, on_delete=models.SET_NULL, related_name="tryouts"
    )
    """Of a tryout."""
    title = models.CharField(max_length=200)
    """The model in words, such as `#3 Add numbers, step 40`; outlives the run."""
    spec = models.JSONField()
    """The GlassSpec, or the TryoutSpec."""
    idempotency_key = models.CharField(max_length=64, blank=True)
    """Asking twice with one key gives one step; empty for none."""

    state = models.CharField(max_length=10, choices=State.choices, default=State.WAITING)
    cause = models.CharField(max_length=60, blank=True)
    """Stable short name of why it ended."""
    message = models.TextField(blank=True)
    """The same in a sentence."""
    advice = models.TextField(blank=True)
    """What to do about it."""
    summary = models.JSONField(default=dict, blank=True)
    """A GlassSummary or a TryoutSummary, once it is done."""

    attempts = models.PositiveSmallIntegerField(default=0)
    """Workers that began it; the number guards what the newest of them says."""
    worker = models.CharField(max_length=255, blank=True)
    cancel_asked = models.BooleanField(default=False)
    created_at = models.DateTimeField(default=timezone.now)
    sent_at = models.DateTimeField(null=True, blank=True)
    """When a message about it was last given to the broker."""
    started_at = models.DateTimeField(null=True, blank=True)
    seen_at = models.DateTimeField(null=True, blank=True)
    """When its worker was last heard of."""
    finished_at = models.DateTimeField(null=True, blank=True)

    objects = GlassQuerySet.as_manager()

    class Meta:
        ordering = ("-id",)
        constraints = (
            models.UniqueConstraint(
                fields=("owner", "idempotency_key"),
                condition=~Q(idempotency_key=""),
                name="glass_one_step_per_key",
            ),
        )
        indexes = (models.Index(fields=("state", "created_at"), name="glass_by_state"),)

    def __str__(self) -> str:
        return self.title

    @property
    def is_active(self) -> bool:
        """Whether a worker has it or will have it."""
        return self.state in {self.State.WAITING, self.State.RUNNING}

    @property
    def directory(self) -> GlassDir:
        """Where its files lie."""
        return GlassDir(Path(settings.GLASS_DIR) / str(self.pk))

    @property
    def look(self) -> str:
        """Name of its state for the pill."""
        return f"glass-{self.state}"

    @property
    def is_tryout(self) -> bool:
        """Whether it is a tryout, not a step."""
        return self.kind == self.Kind.TRYOUT

    def read_request(self) -> GlassSpec | TryoutSpec:
        """What is asked for. Raises pydantic.ValidationError."""
        return REQUEST.validate_python(self.spec)

    def read_spec(self) -> GlassSpec:
        """The spec of a step. Raises pydantic.ValidationError."""
        return GlassSpec.model_validate(self.spec)

    def read_tryout(self) -> TryoutSpec:
        """The spec of a tryout. Raises pydantic.ValidationError."""
        return TryoutSpec.model_validate(self.spec)
