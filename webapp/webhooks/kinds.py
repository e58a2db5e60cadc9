"""What webhooks tell of."""

from __future__ import annotations

KINDS = {
    "run.succeeded": "A run did all its steps, or reached its budget.",
    "run.failed": "A run ended by an error.",
    "run.stopped": "A run was stopped by a person.",
    "run.lost": "The worker of a run went silent; it comes back or the run is queued again.",
}
"""Kind to a sentence; the part behind the dot is the state that the run came into."""
TEST = "test"
"""Sent by the button *Send a test*; about no run."""
