"""Failures that end an attempt, each with a cause, a sentence and an advice.

Raised anywhere in the core, turned into an `attempt_finished` event by `workers.trainer_main`.
`Interrupted` is no failure: it carries a person's wish out of a long rollout or evaluation.
"""

from __future__ import annotations

from training_core.contract.control import Command


class TrainingFailure(Exception):
    """The run cannot go on as it is."""

    cause = "failed"
    retryable = False

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice


class BadModel(TrainingFailure):
    """The base model cannot be found, read or trained."""

    cause = "bad_model"


class BadCheckpoint(TrainingFailure):
    """A checkpoint cannot be made into a model folder."""

    cause = "bad_checkpoint"


class BadData(TrainingFailure):
    """A domain cannot deliver prompts that this model can take."""

    cause = "bad_data"


class Diverged(TrainingFailure):
    """Loss, gradient or weights stopped being finite."""

    cause = "diverged"


class OutOfMemory(TrainingFailure):
    """One row alone does not fit into memory."""

    cause = "out_of_memory"
    retryable = True


class DiskFull(TrainingFailure):
    """Nothing more can be written."""

    cause = "disk_full"
    retryable = True


class Crashed(TrainingFailure):
    """An error that nobody foresaw."""

    cause = "crash"
    retryable = True


class OwnerLost(TrainingFailure):
    """Another attempt owns the run directory; this one may not write checkpoints."""

    cause = "owner_lost"


class Interrupted(Exception):
    """A person asked the run to stop, pause or shut down; work of the current step is dropped."""

    def __init__(self, command: Command) -> None:
        super().__init__(command)
        self.command = command
