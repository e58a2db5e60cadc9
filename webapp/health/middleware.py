"""Two middlewares: the addresses that machines ask, and the clock of all other requests.

Named in `settings.MIDDLEWARE`. Probes come first of all: a load balancer asks by address and
without TLS, so neither the check of the host name nor the redirect to https may stand before them.
That is why `/healthz`, `/readyz` and `/metrics` are in no `urls.py`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable

from asgiref.sync import iscoroutinefunction
from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

from webapp.accounts.log_filter import hide_secrets
from webapp.health.figures import write_figures
from webapp.health.guard import refusal
from webapp.health.readiness import LOOKS
from webapp.health.request_clock import IN_PROGRESS, note_request

logger = logging.getLogger("webapp.requests")

Handler = Callable[[HttpRequest], HttpResponseBase | Awaitable[HttpResponseBase]]
Pass = Callable[[HttpRequest], HttpResponseBase]


def alive(_: HttpRequest) -> HttpResponse:
    """The process turns its loop and can begin a thread; nothing else is asked."""
    return _uncached(HttpResponse("alive\n", content_type="text/plain; charset=utf-8"))


def ready(_: HttpRequest) -> HttpResponse:
    """Whether it can serve: 200 when ready or degraded, 503 when not; JSON says which part."""
    readiness = LOOKS.newest()
    status = 503 if readiness.state == "failed" else 200
    return _uncached(JsonResponse(readiness.as_document(), status=status))


def figures(request: HttpRequest) -> HttpResponse:
    """The figures for Prometheus."""
    refused = refusal(request)
    if refused is not None:
        return _uncached(refused)
    content, content_type = write_figures(request.headers.get("Accept", ""))
    return _uncached(HttpResponse(content, content_type=content_type))


PROBES: dict[str, Callable[[HttpRequest], HttpResponse]] = {
    "/healthz": alive,
    "/readyz": ready,
    "/metrics": figures,
}


def probes(get_response: Callable[[HttpRequest], HttpResponseBase]) -> Pass:
    """Answers the probes, passes everything else on."""

    def answer_or_pass(request: HttpRequest) -> HttpResponseBase:
        probe = PROBES.get(request.path_info) if request.method in {"GET", "HEAD"} else None
        return get_response(request) if probe is None else probe(request)

    return answer_or_pass


@sync_and_async_middleware
def request_clock(get_response: Handler) -> Handler:
    """Times each request until its answer begins; a stream's life is not counted."""
    if iscoroutinefunction(get_response):

        async def timed(request: HttpRequest) -> HttpResponseBase:
            started = time.perf_counter()
            with IN_PROGRESS.track_inprogress():
                passed = get_response(request)
                response = passed if isinstance(passed, HttpResponseBase) else await passed
            _note(request, response, time.perf_counter() - started)
            return response

        return timed

    def timed_now(request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        started = time.perf_counter()
        with IN_PROGRESS.track_inprogress():
            response = get_response(request)
        if isinstance(response, HttpResponseBase):
            _note(request, response, time.perf_counter() - started)
        return response

    return timed_now


def _note(request: HttpRequest, response: HttpResponseBase, seconds: float) -> None:
    """Count the request, and write it to the log where that is wanted."""
    match = request.resolver_match
    view = match.view_name if match is not None else ""
    note_request(request.method or "", view, response.status_code, seconds)
    if settings.LOG_REQUESTS:
        facts = {
            "method": request.method,
            "path": hide_secrets(request.path),
            "view": view,
            "status": response.status_code,
            "milliseconds": round(seconds * 1000, 1),
            "client": request.META.get("REMOTE_ADDR", ""),
        }
        logger.info("%(method)s %(path)s %(status)d %(milliseconds).1f ms", facts, extra=facts)


def _uncached(response: HttpResponse) -> HttpResponse:
    """A probe's answer is old at once."""
    response["Cache-Control"] = "no-store"
    return response
