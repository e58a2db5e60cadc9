"""What each role means in a sentence, and how a role comes out of a form."""

from __future__ import annotations

from django.utils.functional import Promise
from django.utils.translation import gettext, pgettext
from django.utils.translation import gettext_lazy as _

from webapp.accounts.models import Role
from webapp.accounts.refusals import PeopleRefused

ROLE_WORDS: dict[str, Promise] = {
    Role.VIEWER: _("Reads everything in the project and changes nothing."),
    Role.REVIEWER: _("Reads everything in the project and comments on runs."),
    Role.CURATOR: _("Looks after all datasets of the project, and comments on runs."),
    Role.RESEARCHER: _(
        "Launches runs and steers their own; adds datasets, exports models; comments on runs."
    ),
    Role.ADMIN: _(
        "Everything in the project: members, invitations, the audit log, everybody's runs, "
        "datasets, exports and comments."
    ),
}


USUAL_ROLE = Role.RESEARCHER
"""What forms offer first."""


def read_role(text: str) -> Role:
    """The role that a form names. Raises PeopleRefused."""
    if text not in Role.values:
        roles = pgettext("between names", ", ").join(role.word for role in Role)
        raise PeopleRefused(gettext("Choose a role: %(roles)s.") % {"roles": roles}, "role")
    return Role(text)
