"""Problem documents for what goes wrong below `/api/v1` before or after any operation of ours.

An unknown address, a method that an address does not have, a body that is too large, a fault of
the server: Django answers these with pages, which a program cannot read.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from webapp.api.problems import CONTENT_TYPE, Problem, problem_response

PREFIX = "/api/v1/"
KEPT_HEADERS = ("Allow", "Retry-After", "WWW-Authenticate")
WORDS = {
    400: "The request could not be read; look at its address, headers and body.",
    404: "There is nothing at this address; /api/v1/docs lists what there is.",
    405: "This address does not take that method; the header Allow lists those that it takes.",
    413: "The request is larger than this address takes.",
    500: "Something broke on the server. The log there says what; trying again may help.",
}
Answer = HttpResponseBase | Awaitable[HttpResponseBase]


class ProblemDocuments:
    """Django middleware. It works for both kinds of server, so that no thread waits for a view."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Answer]) -> None:
        self.get_response = get_response
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> Answer:
        """Replace an error's page."""
        answer = self.get_response(request)
        if isinstance(answer, HttpResponseBase):
            return _instead(request, answer)
        return _instead_later(request, answer)


async def _instead_later(
    request: HttpRequest, answer: Awaitable[HttpResponseBase]
) -> HttpResponseBase:
    return _instead(request, await answer)


def _instead(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    """The response, or the problem document in place of an error's page."""
    status = response.status_code
    if status < 400 or not request.path.startswith(PREFIX):
        return response
    if response.headers.get("Content-Type", "").startswith(CONTENT_TYPE):
        return response
    headers = {k: response.headers[k] for k in KEPT_HEADERS if k in response.headers}
    detail = WORDS.get(status, HTTPStatus(status).phrase)
    return problem_response(Problem(status, detail, headers=headers))
