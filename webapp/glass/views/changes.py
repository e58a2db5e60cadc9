"""End a step under glass or a tryout, or delete one that has ended."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from webapp.glass.access import get_own_glass_step
from webapp.glass.models import GlassStep
from webapp.glass.services import cancel_step, delete_step
from webapp.ui.people import signed_in

ALREADY = {
    GlassStep.State.WAITING: gettext_lazy("It is waiting already."),
    GlassStep.State.RUNNING: gettext_lazy("It is running already."),
    GlassStep.State.DONE: gettext_lazy("It is done already."),
    GlassStep.State.FAILED: gettext_lazy("It is failed already."),
    GlassStep.State.CANCELLED: gettext_lazy("It is cancelled already."),
}


@require_POST
def cancel(request: HttpRequest, glass_id: UUID) -> HttpResponse:
    """Do not take it, or kill the process that takes it."""
    user = signed_in(request)
    step = get_own_glass_step(user, glass_id)
    if not cancel_step(step, user):
        messages.info(request, str(ALREADY[GlassStep.State(step.state)]))
    return redirect("glass:detail", glass_id=glass_id)


@require_POST
def delete(request: HttpRequest, glass_id: UUID) -> HttpResponse:
    """Row and files."""
    user = signed_in(request)
    step = get_own_glass_step(user, glass_id)
    if not delete_step(step, user):
        messages.error(request, _("It has not ended; cancel it first."))
        return redirect("glass:detail", glass_id=glass_id)
    words = _("The tryout was deleted.") if step.is_tryout else _("The step was deleted.")
    messages.success(request, words)
    if step.is_tryout and step.version is not None:
        return redirect("datasets:check", version_id=step.version.pk)
    return redirect("glass:index")
