"""Who may read which metrics. Used by every view of this app.

Scripts and streams call these views, so somebody who is not signed in gets a 401 that says so and
not the sign-in page.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import wraps
from typing import Concatenate, ParamSpec, cast
from uuid import UUID

from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.models import AnonymousUser
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.utils.translation import gettext as _

from webapp.accounts.models import User
from webapp.runs.models import Run

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponse]


def signed_in_or_401(view: View[P]) -> View[P]:
    """A view for people who are signed in; others get a 401 in JSON."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        if not request.user.is_authenticated:
            return unauthorised()
        return view(request, *args, **kwargs)

    return cast("View[P]", login_not_required(guarded))


def unauthorised() -> HttpResponse:
    """Says that one has to sign in."""
    return JsonResponse({"error": {"field": "", "message": _("Sign in first.")}}, status=401)


def visible_run_ids(user: User | AnonymousUser, run_ids: Collection[UUID]) -> set[UUID]:
    """Those of the runs that the user may see."""
    if not isinstance(user, User):
        return set()
    return set(Run.objects.visible_to(user).filter(pk__in=run_ids).values_list("pk", flat=True))


def get_runs_for_user(user: User | AnonymousUser, run_ids: Sequence[UUID]) -> list[Run]:
    """The runs in the order asked for. Raises Http404 naming the first that cannot be seen."""
    found = {}
    if isinstance(user, User):
        found = {run.pk: run for run in Run.objects.visible_to(user).filter(pk__in=run_ids)}
    for run_id in run_ids:
        if run_id not in found:
            raise Http404(_("There is no run %(id)s.") % {"id": run_id})
    return [found[run_id] for run_id in run_ids]
