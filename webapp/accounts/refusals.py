"""What changes of people and projects are refused with: a sentence, and the field it belongs to."""

from __future__ import annotations


class PeopleRefused(Exception):
    """Nothing was changed, and why."""

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        """Name of the form's field; empty when it is no field's fault."""
