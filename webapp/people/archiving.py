"""Putting a project away, once nothing in it waits or runs any more. Called by its settings page.

In an archived project nobody steers runs, so one that runs on could not be stopped.
"""

from __future__ import annotations

from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from webapp.accounts.members import archive_project
from webapp.accounts.models import Project, User
from webapp.accounts.refusals import PeopleRefused
from webapp.runs.models import Run
from webapp.runs.status import LIVE, RunState

UNDER_WAY = sorted(LIVE | {RunState.QUEUED, RunState.LOST})
"""States that go on by themselves."""
NAMED = 5


@transaction.atomic
def archive_or_refuse(project: Project, actor: User) -> None:
    """Put the project away. Raises PeopleRefused while runs of it wait or run.

    Its row is locked before the runs are counted: a launch or a resume that has begun is waited for
    and counted, one that comes later finds the project archived.
    """
    Project.objects.select_for_update().get(pk=project.pk)
    runs = Run.objects.filter(project=project, state__in=UNDER_WAY).order_by("number")
    numbers = list(runs.values_list("number", flat=True)[: NAMED + 1])
    if numbers:
        names = pgettext("between names", ", ").join(f"#{number}" for number in numbers[:NAMED])
        if len(numbers) > NAMED:
            names = _("%(runs)s and more") % {"runs": names}
        raise PeopleRefused(
            _(
                "Runs of %(project)s wait or run: %(runs)s. Stop or pause them first; nobody "
                "steers runs of an archived project."
            )
            % {"project": project, "runs": names}
        )
    archive_project(project, actor, is_archived=True)
