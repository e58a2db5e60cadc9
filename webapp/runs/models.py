"""Rows of a run: the run itself, its attempts, its log, its checkpoints, wishes and notices.

The run directory is the truth of what a run did; most columns here are an index of it that
`manage.py reingest` rebuilds. The truth that lives here alone is *control*: `Run.state` and its
lease, `RunEvent`, `ControlRequest`. States change through `webapp.runs.moves` only.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.db import models
from django.db.models import F, Q
from django.utils import timezone

from training_core.contract.rundir import RunDir
from training_core.contract.spec import RunSpec
from webapp.accounts.models import Project, User, main_project_pk
from webapp.accounts.roles import Right, projects_where
from webapp.runs import status
from webapp.runs.ids import new_uuid7
from webapp.runs.status import RunState

STATE_CHOICES = [(state.value, state.value) for state in RunState]


class RunCounter(models.Model):
    """One row: the number that was given last. Numbers are never given twice."""

    last = models.PositiveIntegerField(default=0)

    def __str__(self) -> str:
        return f"#{self.last}"

    @classmethod
    def take_next(cls) -> int:
        """The next number; the row stays locked until the caller's transaction ends."""
        cls.objects.get_or_create(pk=1)
        cls.objects.filter(pk=1).update(last=F("last") + 1)
        return cls.objects.get(pk=1).last


class RunQuerySet(models.QuerySet["Run"]):
    """The questions that are asked about runs."""

    def visible_to(self, user: User | AnonymousUser) -> RunQuerySet:
        """Those of the projects that the user may see; a superuser sees all."""
        if isinstance(user, User) and user.is_superuser and user.is_active:
            return self
        return self.filter(project__in=projects_where(user, Right.VIEW))

    def live(self) -> RunQuerySet:
        """A worker holds their lease."""
        return self.filter(state__in=status.LIVE)

    def unarchived(self) -> RunQuerySet:
        """Not put away."""
        return self.filter(archived_at=None)


class Run(models.Model):
    """One experiment: its spec, its state, and the newest things known about it."""

    id = models.UUIDField(primary_key=True, default=new_uuid7, editable=False)
    number = models.PositiveIntegerField(unique=True)
    """What people call it: #12."""
    name = models.CharField(max_length=120)
    owner = models.ForeignKey(User, on_delete=models.PROTECT, related_name="runs")
    project = models.ForeignKey(
        Project, on_delete=models.PROTECT, related_name="runs", default=main_project_pk
    )
    """Who belongs to it may see the run."""
    spec = models.JSONField()
    """The frozen RunSpec."""
    spec_version = models.PositiveSmallIntegerField()
    preset = models.SlugField(max_length=80, blank=True)
    """Card of the launch page that it was made from."""
    parent = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.SET_NULL, related_name="children"
    )
    parent_checkpoint = models.ForeignKey(
        "runs.Checkpoint", null=True, blank=True, on_delete=models.SET_NULL, related_name="forks"
    )
    """Checkpoint of the parent that it started from."""
    idempotency_key = models.CharField(max_length=200, blank=True)
    """Launching twice with one key gives one run; empty for none."""

    state = models.CharField(max_length=12, choices=STATE_CHOICES, default=RunState.DRAFT.value)
    cause = models.CharField(max_length=60, blank=True)
    """Stable short name of why it is in this state."""
    message = models.TextField(blank=True)
    """The same in a sentence."""
    advice = models.TextField(blank=True)
    """What to do about it."""

    attempt = models.PositiveIntegerField(default=0)
    """Number of the newest attempt; 0 before the first."""
    idle_attempts = models.PositiveIntegerField(default=0)
    """Attempts in a row that ended badly without a new checkpoint."""
    step = models.PositiveIntegerField(default=0)
    """Optimiser steps done."""
    total_steps = models.PositiveIntegerField()
    stage = models.CharField(max_length=60, blank=True)
    phase = models.JSONField(null=True, blank=True)
    """The last PhaseProgress of the newest attempt."""
    latest = models.JSONField(default=dict, blank=True)
    """Headline metric to last value; NaN and infinities are strings."""
    eta_s = models.FloatField(null=True, blank=True)
    """Seconds to the end, as of the last step."""
    pace = models.JSONField(null=True, blank=True)
    """What `eta_s` is computed from: see `webapp.control.pace`."""

    created_at = models.DateTimeField(default=timezone.now)
    queued_at = models.DateTimeField(null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    """First claim."""
    finished_at = models.DateTimeField(null=True, blank=True)
    archived_at = models.DateTimeField(null=True, blank=True)

    sent_at = models.DateTimeField(null=True, blank=True)
    """When a message about the queued run was last given to the broker."""
    lease_owner = models.CharField(max_length=255, blank=True)
    """Worker that holds the run; empty when none does."""
    lease_until = models.DateTimeField(null=True, blank=True)
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    """When its worker was last heard of."""
    fencing_token = models.BigIntegerField(default=0)
    """Grows with each claim; an older token may do nothing any more."""

    objects = RunQuerySet.as_manager()

    class Meta:
        ordering = ("-number",)
        constraints = (
            models.UniqueConstraint(
                fields=("owner", "idempotency_key"),
                condition=~Q(idempotency_key=""),
                name="run_one_launch_per_key",
            ),
            models.CheckConstraint(
                condition=Q(state__in=[state.value for state in RunState]), name="run_known_state"
            ),
            models.CheckConstraint(
                condition=~Q(state__in=sorted(status.LIVE))
                | (~Q(lease_owner="") & Q(lease_until__isnull=False)),
                name="run_live_has_lease",
            ),
        )
        indexes = (
            models.Index(fields=("state", "queued_at"), name="run_by_state"),
            models.Index(fields=("owner", "-number"), name="run_by_owner"),
            models.Index(fields=("project", "-number"), name="run_by_project"),
        )

    def __str__(self) -> str:
        return f"#{self.number} {self.name}"

    @property
    def run_state(self) -> RunState:
        """The state as an enum member."""
        return RunState(self.state)

    @property
    def is_live(self) -> bool:
        """Whether a worker holds its lease."""
        return self.state in status.LIVE

    @property
    def is_terminal(self) -> bool:
        """Whether nothing happens any more by itself."""
        return self.state in status.TERMINAL

    @property
    def can_stop(self) -> bool:
        """Whether a stop means anything now."""
        return self.state in status.STOPPABLE

    @property
    def can_pause(self) -> bool:
        """Whether a pause means anything now."""
        return self.state in status.PAUSABLE

    @property
    def can_resume(self) -> bool:
        """Whether it can go back into the queue."""
        return self.state in status.RESUMABLE

    @property
    def can_command(self) -> bool:
        """Whether a trainer is there to evaluate or save on demand."""
        return self.state in status.COMMANDABLE

    @property
    def progress_frac(self) -> float:
        """Share of the program that is done, from 0 to 1."""
        return min(1.0, self.step / self.total_steps) if self.total_steps else 0.0

    @property
    def directory(self) -> Path:
        """Where the truth lies."""
        return Path(settings.RUNS_DIR) / str(self.id)

    @property
    def run_dir(self) -> RunDir:
        """Typed access to the directory."""
        return RunDir(self.directory)

    def read_spec(self) -> RunSpec:
        """The spec as a RunSpec."""
        return RunSpec.model_validate(self.spec)

    def train_time(self) -> timedelta:
        """Time spent in attempts so far."""
        now = timezone.now()
        spans = ((a.started_at, a.ended_at or now) for a in self.attempts.all())
        return sum((end - start for start, end in spans), timedelta())


class RunEvent(models.Model):
    """The log of control: every change of state and every wish, with who and why. Append-only."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="events")
    at = models.DateTimeField(default=timezone.now)
    kind = models.CharField(max_length=20)
    """`state`, `wish` or `edit`."""
    from_state = models.CharField(max_length=12, blank=True)
    to_state = models.CharField(max_length=12, blank=True)
    actor = models.CharField(max_length=255)
    """User name, worker name, or `reaper`."""
    cause = models.CharField(max_length=60, blank=True)
    data = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering = ("pk",)
        indexes = (models.Index(fields=("run", "id"), name="runevent_by_run"),)

    def __str__(self) -> str:
        return f"{self.run_id} {self.kind} {self.from_state} -> {self.to_state}"


class Attempt(models.Model):
    """One trainer process of a run, and how far its events file has been read."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="attempts")
    number = models.PositiveIntegerField()
    worker = models.CharField(max_length=255, blank=True)
    boot = models.CharField(max_length=32, blank=True)
    """Which start of that worker; a restarted worker cannot own its predecessor's attempts."""
    started_at = models.DateTimeField(default=timezone.now)
    ended_at = models.DateTimeField(null=True, blank=True)
    start_step = models.PositiveIntegerField(null=True, blank=True)
    """Step of the checkpoint it went on from; null until the trainer has said so."""
    last_step = models.PositiveIntegerField(default=0)
    """Steps done when it was last heard of."""
    device = models.CharField(max_length=200, blank=True)
    facts = models.JSONField(default=dict, blank=True)
    """What the trainer said of itself: pid, threads, versions, precision, parameters."""
    outcome = models.CharField(max_length=12, blank=True)
    """How it ended; empty while it runs."""
    cause = models.CharField(max_length=60, blank=True)
    message = models.TextField(blank=True)
    advice = models.TextField(blank=True)
    retryable = models.BooleanField(default=False)
    ingest_offset = models.BigIntegerField(default=0)
    """Bytes of events.jsonl that have become rows."""
    last_seq = models.BigIntegerField(default=0)
    """Sequence number of the last event that has become rows."""

    class Meta:
        ordering = ("run", "number")
        constraints = (
            models.UniqueConstraint(fields=("run", "number"), name="attempt_once_per_number"),
        )

    def __str__(self) -> str:
        return f"attempt {self.number} of {self.run_id}"


class CheckpointQuerySet(models.QuerySet["Checkpoint"]):
    """The questions that are asked about checkpoints."""

    def on_disk(self) -> CheckpointQuerySet:
        """Not removed by the retention rule."""
        return self.filter(removed_at=None)


class Checkpoint(models.Model):
    """A whole saved state in the run directory; one row a directory."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="checkpoints")
    attempt = models.PositiveIntegerField()
    step = models.PositiveIntegerField()
    stage = models.CharField(max_length=60, blank=True)
    path = models.CharField(max_length=200)
    """Directory relative to the run directory."""
    size_bytes = models.BigIntegerField()
    is_best = models.BooleanField(default=False)
    pass_at_1 = models.FloatField(null=True, blank=True)
    created_at = models.DateTimeField()
    removed_at = models.DateTimeField(null=True, blank=True)

    objects = CheckpointQuerySet.as_manager()

    class Meta:
        ordering = ("run", "-step")
        constraints = (
            models.UniqueConstraint(fields=("run", "path"), name="checkpoint_once_per_path"),
        )

    def __str__(self) -> str:
        return f"checkpoint {self.step} of {self.run_id}"

    @property
    def directory(self) -> Path:
        """Where it lies on disk."""
        return self.run.directory / self.path


class ControlRequest(models.Model):
    """A command: asked by a person, carried by the supervisor, applied by the trainer."""

    id = models.UUIDField(primary_key=True, default=new_uuid7, editable=False)
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="control_requests")
    attempt = models.PositiveIntegerField()
    command = models.CharField(max_length=20)
    actor = models.ForeignKey(User, null=True, blank=True, on_delete=models.SET_NULL)
    asked_at = models.DateTimeField(default=timezone.now)
    sent_at = models.DateTimeField(null=True, blank=True)
    """When the supervisor wrote it to `control.jsonl`."""
    applied_at = models.DateTimeField(null=True, blank=True)
    result = models.TextField(blank=True)

    class Meta:
        ordering = ("asked_at",)
        indexes = (
            models.Index(
                fields=("run", "attempt"), condition=Q(sent_at=None), name="control_unsent"
            ),
        )

    def __str__(self) -> str:
        return f"{self.command} for {self.run_id}"


class RunNotice(models.Model):
    """Something a person should know about a run; training went on."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="notices")
    attempt = models.PositiveIntegerField()
    seq = models.BigIntegerField()
    """Event that said so; minus the byte offset of a line that could not be read."""
    step = models.PositiveIntegerField()
    level = models.CharField(max_length=10)
    code = models.CharField(max_length=60)
    message = models.TextField()
    at = models.DateTimeField()

    class Meta:
        ordering = ("run", "attempt", "at", "seq")
        constraints = (
            models.UniqueConstraint(
                fields=("run", "attempt", "seq", "code"), name="notice_once_per_event"
            ),
        )

    def __str__(self) -> str:
        return f"{self.level} {self.code} of {self.run_id}"
