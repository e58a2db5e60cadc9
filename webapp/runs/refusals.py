"""What `services` refuses, as exceptions whose text is shown to the person as it is."""

from __future__ import annotations

from collections.abc import Sequence

from training_core.contract.field_errors import FieldError


class LaunchRefused(Exception):
    """A run cannot be launched as it is specified; nothing was made."""

    def __init__(self, message: str, errors: Sequence[FieldError] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.errors = list(errors)
        """What is wrong at which field; empty when it is no field's fault."""


class ControlRefused(Exception):
    """A run cannot do that in the state that it is in."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
