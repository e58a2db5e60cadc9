"""What a token may do: five words, chosen when it is made and never widened.

They only take away: a token does nothing that its person's roles do not allow.

Read by the operations of `/api/v1`, the token page and `manage.py api-token`.
"""

from __future__ import annotations

from enum import StrEnum

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _


class Scope(StrEnum):
    """One permission of a token; the value is what the database and HTTP headers hold."""

    READ = "read"
    LAUNCH = "launch"
    CONTROL = "control"
    DATA = "data"
    ADMIN = "admin"


SCOPE_WORDS: dict[Scope, Promise] = {
    Scope.READ: _(
        "Look at runs, curves, logs, rollouts, checkpoints, datasets and workers; download exports."
    ),
    Scope.LAUNCH: _("Launch runs, restart them from checkpoints, export checkpoints."),
    Scope.CONTROL: _(
        "Stop, pause, resume, evaluate, save, archive and delete your runs and exports."
    ),
    Scope.DATA: _("Upload files and import them as dataset versions."),
    Scope.ADMIN: _("Use your rights as an admin, such as steering other people's runs."),
}
"""One sentence each, shown where scopes are chosen."""
