"""The rule of a password's length, in the reader's language.

Django's own asks its catalogues for a text with other placeholders than they hold, so it says this
one thing in English alone.
"""

from __future__ import annotations

from django.contrib.auth.password_validation import MinimumLengthValidator
from django.utils.translation import ngettext


class LongEnough(MinimumLengthValidator):
    """At least so many characters."""

    def get_error_message(self) -> str:
        """What somebody reads whose password is too short."""
        text = ngettext(
            "This password is too short. It must contain at least %(count)s character.",
            "This password is too short. It must contain at least %(count)s characters.",
            self.min_length,
        )
        return text % {"count": self.min_length}
