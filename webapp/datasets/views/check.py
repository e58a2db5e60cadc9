"""Check a run on a dataset before it is launched: try the base model, then launch."""

from __future__ import annotations

from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from training_core.contract.presets import Preset, find_preset
from training_core.contract.spec import RunSpec
from webapp.accounts.models import User
from webapp.accounts.roles import Right, may, who_may
from webapp.datasets.access import get_version_for_user
from webapp.datasets.check_page import CheckPage
from webapp.datasets.models import DatasetVersion
from webapp.glass.access import can_end, get_tryout_for_user, glass_steps_for
from webapp.glass.models import GlassStep
from webapp.glass.services import ask_for_tryout
from webapp.runs.origins import launch_from
from webapp.runs.refusals import LaunchRefused
from webapp.ui.fragments import wants_fragment
from webapp.ui.people import signed_in

EARLIER = 5


@require_http_methods(["GET", "POST"])
def check(request: HttpRequest, version_id: UUID) -> HttpResponse:
    """GET opens the page with proposals or an earlier tryout; POST looks again, tries, launches."""
    user = signed_in(request)
    version = get_version_for_user(user, str(version_id))
    if request.method == "GET":
        tryout = _tryout(user, version, request.GET.get("tryout", ""))
        preset = _preset(request.GET.get("preset", ""))
        return _render(request, CheckPage.opening(version, preset, tryout))
    _refuse_who_may_not_launch(user, version)
    posted = request.POST.dict()
    tryout = _tryout(user, version, posted.get("tryout", ""))
    page = CheckPage.from_post(version, _preset(posted.get("preset", "")), posted, tryout)
    action = posted.get("action", "look")
    if action == "look":
        return _render(request, page)
    spec = page.launchable_spec
    if spec is None or (action == "try" and not page.records):
        return _render(request, page, status=422)
    if action == "try":
        asked = ask_for_tryout(user, version, page.make_tryout(spec), page.key)
        address = reverse("datasets:check", args=[version.pk])
        return redirect(f"{address}?tryout={asked.pk}#base")
    return _launch(request, page, spec)


def _launch(request: HttpRequest, page: CheckPage, spec: RunSpec) -> HttpResponse:
    """The run, or the page with why not. The same key gives the same run."""
    project = page.version.dataset.project
    try:
        run = launch_from(page.origin, signed_in(request), spec, page.key, project)
    except LaunchRefused as refusal:
        page.refuse(refusal)
        return _render(request, page, status=422)
    return redirect("runs:detail", number=run.number)


def _tryout(user: User, version: DatasetVersion, key: str) -> GlassStep | None:
    """The tryout that an address names. Raises Http404."""
    return get_tryout_for_user(user, version, key) if key else None


def _preset(slug: str) -> Preset | None:
    """The preset that an address names. Raises Http404."""
    preset = find_preset(slug) if slug else None
    if slug and preset is None:
        raise Http404(_("There is no preset %(slug)s.") % {"slug": slug})
    return preset


def _refuse_who_may_not_launch(user: User, version: DatasetVersion) -> None:
    """Raise PermissionDenied, with who can."""
    project = version.dataset.project
    if not may(user, Right.LAUNCH, project):
        raise PermissionDenied(
            _(
                "Trying a base model and launching in %(project)s need the right to launch. Ask "
                "%(who)s."
            )
            % {"project": project, "who": who_may(Right.LAUNCH, project)}
        )


def _render(request: HttpRequest, page: CheckPage, status: int = 200) -> HttpResponse:
    """The page, or for a script what follows from the form."""
    user = signed_in(request)
    context = {"page": page, "version": page.version, "it": page.tryout_view}
    if wants_fragment(request):
        return render(request, "datasets/check_fragment.html", context)
    earlier = glass_steps_for(user).tryouts_of(page.version)
    if page.tryout is not None:
        earlier = earlier.exclude(pk=page.tryout.pk)
        context["may_end"] = can_end(user, page.tryout)
    context["earlier"] = earlier[:EARLIER]
    context["mapping"] = getattr(page.version, "made_by", None)
    return render(request, "datasets/check.html", context, status=status)
