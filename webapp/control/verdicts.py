"""How an attempt ended, and what that means for the run: pure functions, no database.

`Verdict` is made from the trainer's `attempt_finished`, or by the supervisor when the trainer could
not say it, or by the reaper when there is no supervisor either. `settle` turns it into the run's
next state.
"""

from __future__ import annotations

from typing import NamedTuple

from training_core.contract.events import Outcome
from webapp.runs.status import RunState

NEVER_RETRIED = frozenset({"out_of_memory", "bad_model", "bad_data", "bad_dataset", "bad_spec"})
"""Causes that another attempt would meet again, whatever the trainer thinks."""


class Verdict(NamedTuple):
    """How one attempt ended."""

    outcome: Outcome
    """How it ended."""
    cause: str
    """Stable short name."""
    message: str
    """What happened, in a sentence."""
    advice: str = ""
    """What to do about it."""
    retryable: bool = False
    """Whether another attempt may succeed without a change."""

    @property
    def may_retry(self) -> bool:
        """Whether another attempt is worth its time."""
        return self.retryable and self.cause not in NEVER_RETRIED


class Settlement(NamedTuple):
    """Where a run goes after an attempt."""

    state: RunState
    """The next state."""
    idle_attempts: int
    """Attempts in a row that ended badly without progress, this one counted."""
    gave_up: bool = False
    """Whether it fails because it has had its attempts."""


def settle(
    state: RunState, verdict: Verdict, *, progressed: bool, idle_attempts: int, max_attempts: int
) -> Settlement:
    """The run's next state after an attempt that ended so, while the run was in `state`.

    A person's wish comes first: a run that was to stop or pause does so even when the trainer
    crashed on the way. A crash is retried up to `max_attempts` times without progress; an attempt
    that saved a new checkpoint sets the count back.
    """
    if verdict.outcome == "succeeded":
        return Settlement(RunState.SUCCEEDED, 0)
    if state is RunState.STOPPING:
        return Settlement(RunState.STOPPED, 0)
    failed = verdict.outcome == "failed"
    if state is RunState.PAUSING and (verdict.may_retry or not failed):
        return Settlement(RunState.PAUSED, 0)
    if verdict.outcome == "shutdown":
        return Settlement(RunState.QUEUED, idle_attempts)
    # What is left is a failure, or a trainer that stopped though nobody asked it to.
    idle = 0 if progressed else idle_attempts + 1
    if failed and not verdict.may_retry:
        return Settlement(RunState.FAILED, idle)
    if idle >= max_attempts:
        return Settlement(RunState.FAILED, idle, gave_up=True)
    return Settlement(RunState.QUEUED, idle)
