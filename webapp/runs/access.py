"""Who may see and who may steer a run: the only way in which a view gets a Run.

Called by every view that names a run. A run that somebody may not see does not exist for them.
"""

from __future__ import annotations

from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.http import Http404

from webapp.accounts.models import User
from webapp.runs.models import Run


def get_run_for_user(user: User | AnonymousUser, number: int) -> Run:
    """The run of that number. Raises Http404 when there is none that the user may see."""
    run = Run.objects.visible_to(user).select_related("owner").filter(number=number).first()
    if run is None:
        raise Http404(f"There is no run #{number}.")
    return run


def get_controllable_run_for_user(user: User | AnonymousUser, number: int) -> Run:
    """The same for steering. Raises PermissionDenied when the run is somebody else's."""
    run = get_run_for_user(user, number)
    if not can_control(user, run):
        raise PermissionDenied(
            f"Run #{number} belongs to {run.owner}; only they or staff steer it."
        )
    return run


def can_control(user: User | AnonymousUser, run: Run) -> bool:
    """Whether pages offer this user the buttons of the run."""
    return isinstance(user, User) and (user.is_staff or run.owner_id == user.pk)
