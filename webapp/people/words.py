"""What each role means in a sentence, and how a role comes out of a form."""

from __future__ import annotations

from webapp.accounts.models import Role
from webapp.accounts.refusals import PeopleRefused

ROLE_WORDS: dict[str, str] = {
    Role.VIEWER: "Reads everything in the project and changes nothing.",
    Role.REVIEWER: "Reads everything in the project and comments on runs.",
    Role.CURATOR: "Looks after all datasets of the project, and comments on runs.",
    Role.RESEARCHER: (
        "Launches runs and steers their own; adds datasets, exports models; comments on runs."
    ),
    Role.ADMIN: (
        "Everything in the project: members, invitations, the audit log, everybody's runs, "
        "datasets, exports and comments."
    ),
}


USUAL_ROLE = Role.RESEARCHER
"""What forms offer first."""


def read_role(text: str) -> Role:
    """The role that a form names. Raises PeopleRefused."""
    if text not in Role.values:
        raise PeopleRefused(f"Choose a role: {', '.join(Role.values)}.", "role")
    return Role(text)
