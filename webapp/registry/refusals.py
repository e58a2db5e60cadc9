"""What `services` refuses; the text is shown to the person as it is."""

from __future__ import annotations


class ExportRefused(Exception):
    """An export cannot be made, kept or deleted as things are."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
