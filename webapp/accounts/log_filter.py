"""Keeps sign-in links out of the logs. Named in `settings.LOGGING`.

Django logs the path of every request that it refuses, and the path of such a link is a secret.
"""

from __future__ import annotations

import logging
import re

SECRET_PATH = re.compile(r"(/accounts/link/|/invitations?/|/password/reset/key/)[^\s/?\"']+")


def hide_secrets(text: str) -> str:
    """The text without the secret parts of addresses in it."""
    return SECRET_PATH.sub(r"\1…", text)


class HideSecrets(logging.Filter):
    """Replaces secrets in the finished message."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Always True: the record stays, its secrets go."""
        message = record.getMessage()
        hidden = hide_secrets(message)
        if hidden != message:
            record.msg, record.args = hidden, None
        return True
