"""What webhooks tell of."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

KINDS = {
    "run.succeeded": _("A run did all its steps, or reached its budget."),
    "run.failed": _("A run ended by an error."),
    "run.stopped": _("A run was stopped by a person."),
    "run.lost": _("The worker of a run went silent; it comes back or the run is queued again."),
}
"""Kind to a sentence; the part behind the dot is the state that the run came into."""
TEST = "test"
"""Sent by the button *Send a test*; about no run."""
