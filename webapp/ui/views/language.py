"""The language of the pages: choosing it, and the texts of the scripts in it."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.translation import check_for_language, override
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_GET, require_POST
from django.views.i18n import JavaScriptCatalog, set_language

_catalogue = JavaScriptCatalog.as_view(packages=["webapp.ui"])


@login_not_required
@require_POST
def language(request: HttpRequest) -> HttpResponse:
    """Keep the language `language` in a cookie for a year and go back to `next`."""
    answer: HttpResponse = set_language(request)
    return answer


@login_not_required
@require_GET
@cache_control(max_age=3600, private=True)
def texts(request: HttpRequest) -> HttpResponseBase:
    """What `static/js/ui/texts.js` asks: the scripts' texts in the language `in`."""
    code = request.GET.get("in", "")
    with override(code if check_for_language(code) else "en"):
        answer: HttpResponseBase = _catalogue(request)
        return answer
