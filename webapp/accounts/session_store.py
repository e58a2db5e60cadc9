"""Sessions in the database, under keys of the form that Django gives them.

Named in `settings.SESSION_ENGINE`. A cookie may hold anything: a NUL, which PostgreSQL refuses with
an error and not with an empty answer, would make every page fail for who sends it.
"""

from __future__ import annotations

import re

from django.contrib.sessions.backends import db

KEY_FORM = re.compile(r"[0-9a-z]{8,40}")


class SessionStore(db.SessionStore):
    """Django's, which takes a key of any other form for none."""

    def _validate_session_key(self, key: str | None) -> bool:
        """Whether it may be the key of a session; asked by Django for each key from outside."""
        return key is not None and KEY_FORM.fullmatch(key) is not None
