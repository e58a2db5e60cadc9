"""Tables of the metric store and of live events.

A run's points are written to `MetricTail` (one row a call) and moved in batches to `MetricChunk`
(packed arrays). Written by `webapp.metrics.services` alone, read by `webapp.metrics.read`. What
would surprise: a point has no row of its own, and `version` counts a run's writes, so that a reader
can ask for what is newer than the version it knows.
"""

from __future__ import annotations

from django.db import models


class MetricHead(models.Model):
    """The head of one run's metric log. Its row lock orders all writers of the run."""

    run = models.OneToOneField("runs.Run", on_delete=models.CASCADE, primary_key=True)
    version = models.BigIntegerField(default=0)
    """Number of the newest write."""
    attempt = models.IntegerField(default=0)
    """The attempt that the tail belongs to."""
    last_step = models.BigIntegerField(null=True)
    """Highest step of that attempt."""
    tail_rows = models.IntegerField(default=0)
    tail_points = models.IntegerField(default=0)
    refused = models.BigIntegerField(default=0)
    """Points whose key was unusable, or beyond the limit of keys for a run."""

    def __str__(self) -> str:
        return f"metrics of run {self.run_id} at version {self.version}"


class MetricSeries(models.Model):
    """One metric of one run."""

    run = models.ForeignKey("runs.Run", on_delete=models.CASCADE, related_name="metric_series")
    key = models.CharField(max_length=255)
    changed_version = models.BigIntegerField(default=0)
    """Write that last did anything but add points at the end."""
    rewritten = models.BigIntegerField(default=0)
    """Points that a later write of the same attempt and step replaced."""

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "key"], name="metric_series_run_key"),
        ]

    def __str__(self) -> str:
        return self.key


class MetricSegment(models.Model):
    """The packed part of one series in one attempt, sorted by step, each step once."""

    series = models.ForeignKey(MetricSeries, on_delete=models.CASCADE, related_name="segments")
    attempt = models.IntegerField()
    n = models.BigIntegerField(default=0)
    """Points in it."""
    first_step = models.BigIntegerField(default=0)
    last_step = models.BigIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["series", "attempt"], name="metric_segment_attempt"),
        ]

    def __str__(self) -> str:
        return f"{self.series_id}, attempt {self.attempt}: {self.n} points"


class MetricChunk(models.Model):
    """Packed points (level 0) or packed summaries of 16^level points each (level 1 and up)."""

    segment = models.ForeignKey(MetricSegment, on_delete=models.CASCADE, related_name="chunks")
    level = models.SmallIntegerField()
    index = models.IntegerField()
    """Position in its level; chunk `i` holds entries `i * capacity` and following."""
    n = models.IntegerField()
    """Entries in it."""
    first_step = models.BigIntegerField()
    max_version = models.BigIntegerField(default=0)
    """Newest write in it (level 0 only)."""
    packed = models.BinaryField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["segment", "level", "index"], name="metric_chunk_position"
            ),
        ]
        indexes = [
            models.Index(
                fields=["segment", "max_version"],
                name="metric_chunk_version",
                condition=models.Q(level=0),
            ),
        ]

    def __str__(self) -> str:
        return f"segment {self.segment_id}, level {self.level}, chunk {self.index}"


class MetricTail(models.Model):
    """Points of one write that are not in chunks yet, all series of the run together."""

    run = models.ForeignKey("runs.Run", on_delete=models.CASCADE, related_name="+")
    version = models.BigIntegerField()
    n = models.IntegerField()
    """Points in it."""
    packed = models.BinaryField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "version"], name="metric_tail_run_version"),
        ]

    def __str__(self) -> str:
        return f"run {self.run_id}, write {self.version}"


class MetricCut(models.Model):
    """Where an attempt started: points of earlier attempts beyond that step are superseded."""

    run = models.ForeignKey("runs.Run", on_delete=models.CASCADE, related_name="+")
    attempt = models.IntegerField()
    start_step = models.BigIntegerField()
    version = models.BigIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "attempt"], name="metric_cut_attempt"),
        ]

    def __str__(self) -> str:
        return f"attempt {self.attempt} starts after step {self.start_step}"


class LiveEvent(models.Model):
    """A hint for open pages that something is new. Kept for a week."""

    id = models.BigAutoField(primary_key=True)
    topic = models.CharField(max_length=80)
    kind = models.CharField(max_length=20)
    data = models.JSONField(default=dict)
    at = models.DateTimeField(auto_now_add=True, db_index=True)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.id} {self.topic} {self.kind}"
