"""The checkpoint that a request means: `latest`, `best`, or a step.

Called by the operations that start from one.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from webapp.api.problems import Problem
from webapp.runs.models import Checkpoint, Run


def _step_as_text(value: Any) -> Any:
    """A step may be sent as a number."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


CheckpointName = Annotated[
    str, BeforeValidator(_step_as_text), Field(pattern=r"^(latest|best|[0-9]{1,9})$")
]


def find_checkpoint(run: Run, wanted: str) -> Checkpoint:
    """The checkpoint on disk. Raises Problem 422."""
    kept = run.checkpoints.on_disk().select_related("run__project").order_by("-step", "-pk")
    if wanted.isdecimal():
        kept = kept.filter(step=int(wanted))
    elif wanted == "best":
        kept = kept.filter(is_best=True)
    found = kept.first()
    if found is None:
        words = "no checkpoint" if wanted == "latest" else f"no checkpoint {wanted}"
        raise Problem(422, f"Run #{run.number} has {words} on disk.")
    return found
