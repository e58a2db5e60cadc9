"""Control commands: what a person asks of a running trainer.

The supervisor appends them to `control.jsonl`; the trainer applies each at the next step boundary
and acknowledges it by a `control` event. Replayed by reingest, so a run explains itself.
"""

from __future__ import annotations

from typing import Literal

from training_core.contract.strict import StrictModel

Command = Literal["stop", "pause", "shutdown", "evaluate_now", "checkpoint_now"]


class ControlCommand(StrictModel):
    """One line of `control.jsonl`."""

    id: str
    """Unique id; a command that was applied is not applied again."""
    attempt: int
    """The attempt it is meant for."""
    t: float
    """When it was asked for, seconds since 1970 (UTC)."""
    command: Command
    """`stop` and `pause` save and end; `shutdown` saves and goes back to the queue."""
    actor: str
    """Who asked."""
