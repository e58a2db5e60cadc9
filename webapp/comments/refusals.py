"""What a comment is refused with: a sentence, and the field that it belongs to."""

from __future__ import annotations


class CommentRefused(Exception):
    """Nothing was written, and why."""

    def __init__(self, message: str, field: str = "text") -> None:
        super().__init__(message)
        self.message = message
        self.field = field
