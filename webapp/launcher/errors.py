"""The one exception that the launcher raises for anything a user can mend.

Commands print its text as it is, without a traceback: write it as a sentence that says what is
wrong and what to do.
"""

from __future__ import annotations


class LauncherError(RuntimeError):
    """A failure with a cause and a remedy in its text."""
