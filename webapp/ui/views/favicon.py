"""The icon for browsers that ask for it before they have read a page."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponseRedirect
from django.templatetags.static import static
from django.views.decorators.http import require_safe


@require_safe
@login_not_required
def favicon(_request: HttpRequest) -> HttpResponseRedirect:
    """Where it lies."""
    return HttpResponseRedirect(static("img/mark.svg"))
