"""Held-out evaluations of a run, as the trainer reported them. An index of the run directory."""

from __future__ import annotations

from django.db import models

from webapp.runs.models import Run


class EvalRunQuerySet(models.QuerySet["EvalRun"]):
    """The questions that are asked about evaluations."""

    def current(self) -> EvalRunQuerySet:
        """Not overtaken by a later attempt that went back to an earlier step."""
        return self.filter(superseded=False)


class EvalRun(models.Model):
    """One held-out evaluation of one state of the weights."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="evaluations")
    attempt = models.PositiveIntegerField()
    seq = models.BigIntegerField()
    """Event of the attempt that reported it."""
    step = models.PositiveIntegerField()
    stage = models.CharField(max_length=60, blank=True)
    label = models.CharField(max_length=20)
    """Why it ran: start, stage_end, interval, final or requested."""
    title = models.CharField(max_length=200)
    recipe = models.CharField(max_length=128)
    """Only evaluations of equal recipe are comparable."""
    seconds = models.FloatField()
    results = models.JSONField()
    """List of `contract.events.DomainResult`: first `all`, then each domain."""
    superseded = models.BooleanField(default=False)
    at = models.DateTimeField()

    objects = EvalRunQuerySet.as_manager()

    class Meta:
        ordering = ("run", "step", "attempt", "seq")
        constraints = (
            models.UniqueConstraint(
                fields=("run", "attempt", "seq"), name="evalrun_once_per_event"
            ),
        )

    def __str__(self) -> str:
        return f"{self.title} of {self.run_id}"
