"""Hints to open pages that a step under glass has moved. Called inside the transaction that moved
it."""

from __future__ import annotations

from webapp.glass.models import GlassStep
from webapp.metrics import live


def tell(step: GlassStep) -> None:
    """The pages of the step's project look again."""
    topic = live.project_topic("glass", step.project_id)
    live.publish(topic, "glass", {"id": str(step.pk), "state": step.state})
