"""Sessions in the database, under keys of the form that Django gives them.

Named in `settings.SESSION_ENGINE`. A cookie may hold anything: a NUL, which PostgreSQL refuses with
an error and not with an empty answer, would make every page fail for who sends it.
"""

from __future__ import annotations

import re

from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends import db
from django.contrib.sessions.models import Session

from webapp.accounts.models import User

KEY_FORM = re.compile(r"[0-9a-z]{8,40}")


class SessionStore(db.SessionStore):
    """Django's, which takes a key of any other form for none."""

    def _validate_session_key(self, key: str | None) -> bool:
        """Whether it may be the key of a session; asked by Django for each key from outside."""
        return key is not None and KEY_FORM.fullmatch(key) is not None


def end_sessions(user: User) -> None:
    """Sign somebody out everywhere, for good: an account that opens again asks for its password."""
    own = [
        session.pk
        for session in Session.objects.iterator()
        if session.get_decoded().get(SESSION_KEY) == str(user.pk)
    ]
    Session.objects.filter(pk__in=own).delete()
