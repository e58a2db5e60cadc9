"""The language of a page, and what keeps a browser from showing a part of a page as the page.

Scripts ask addresses of pages for parts of them (`webapp.ui.fragments`). A browser keeps one answer
for an address and shows it when its user goes back, so a part must not be that answer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils import translation
from django.utils.cache import add_never_cache_headers, patch_vary_headers

SCRIPT_HEADER = "HX-Request"
PROGRAMS = "/api/v1/"
"""Below this only programs ask; they read English, whatever their headers say."""

Answer = HttpResponseBase | Awaitable[HttpResponseBase]


class LanguageOfPeople:
    """Pages in the language of the visitor's cookie, else in the one that the browser prefers."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Answer]) -> None:
        self.get_response = get_response
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> Answer:
        programs = request.path_info.startswith(PROGRAMS)
        language = (
            settings.LANGUAGE_CODE if programs else translation.get_language_from_request(request)
        )
        translation.activate(language)
        answer = self.get_response(request)
        if isinstance(answer, HttpResponseBase):
            return _name_language(answer, language)
        return _name_language_later(answer, language)


async def _name_language_later(
    answer: Awaitable[HttpResponseBase], language: str
) -> HttpResponseBase:
    return _name_language(await answer, language)


def _name_language(response: HttpResponseBase, language: str) -> HttpResponseBase:
    """A page that says which language it is in, and that others see another."""
    if response.get("Content-Type", "").startswith("text/html"):
        response.headers.setdefault("Content-Language", language)
        patch_vary_headers(response, ["Accept-Language", "Cookie"])
    return response


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
