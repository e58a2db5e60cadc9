"""Keeps a browser from showing a part of a page as the page.

Scripts ask addresses of pages for parts of them (`webapp.ui.fragments`). A browser keeps one answer
for an address and shows it when its user goes back, so a part must not be that answer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.cache import add_never_cache_headers, patch_vary_headers

SCRIPT_HEADER = "HX-Request"

Answer = HttpResponseBase | Awaitable[HttpResponseBase]


class FragmentsAreNotPages:
    """No answer to htmx is kept, and pages say that they differ from answers to htmx."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Answer]) -> None:
        self.get_response = get_response
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> Answer:
        answer = self.get_response(request)
        if isinstance(answer, HttpResponseBase):
            return _mark(request, answer)
        return _mark_later(request, answer)


async def _mark_later(
    request: HttpRequest, answer: Awaitable[HttpResponseBase]
) -> HttpResponseBase:
    return _mark(request, await answer)


def _mark(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    """The response with its rules for caches."""
    if SCRIPT_HEADER in request.headers:
        add_never_cache_headers(response)
    if response.get("Content-Type", "").startswith("text/html"):
        patch_vary_headers(response, [SCRIPT_HEADER])
    return response
