"""Workers as they last reported themselves."""

from __future__ import annotations

from datetime import timedelta

from django.db import models
from django.utils import timezone

from webapp.runs.models import Run

SILENT_AFTER = timedelta(seconds=30)
"""A worker reports every five seconds; after this long something is wrong."""


class WorkerQuerySet(models.QuerySet["Worker"]):
    """The questions that are asked about workers."""

    def alive(self) -> WorkerQuerySet:
        """Heard of lately and not signed off."""
        return self.filter(stopped_at=None, seen_at__gte=timezone.now() - SILENT_AFTER)


class Worker(models.Model):
    """One Celery worker process."""

    name = models.CharField(max_length=255, unique=True)
    """Celery's node name, such as `train@host`."""
    boot = models.CharField(max_length=32)
    """Id of this start of the process."""
    host = models.CharField(max_length=255)
    pid = models.PositiveIntegerField()
    queues = models.JSONField(default=list)
    slots = models.PositiveIntegerField()
    """Tasks it does at once."""
    devices = models.JSONField(default=list)
    """Devices in words, such as `GPU 0: NVIDIA H200, 140 GiB` or `2 CPU cores`."""
    versions = models.JSONField(default=dict)
    started_at = models.DateTimeField()
    seen_at = models.DateTimeField()
    """When the process last reported itself to the database."""
    consuming_at = models.DateTimeField(null=True, blank=True)
    """When its loop last turned with a live broker connection; old means alive but deaf."""
    canary_at = models.DateTimeField(null=True, blank=True)
    """When it last did the small task that beat sends round; empty on a queue without one."""
    stopped_at = models.DateTimeField(null=True, blank=True)
    """When it signed off."""
    busy_run = models.ForeignKey(
        Run, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    """A run that it trains now."""

    objects = WorkerQuerySet.as_manager()

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name

    @property
    def is_alive(self) -> bool:
        """Whether it was heard of lately."""
        return self.stopped_at is None and timezone.now() - self.seen_at < SILENT_AFTER

    @property
    def is_deaf(self) -> bool:
        """Whether it lives but hears nothing from the broker."""
        heard = self.consuming_at or self.started_at
        return self.is_alive and timezone.now() - heard > SILENT_AFTER
