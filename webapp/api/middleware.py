"""Problem documents for what goes wrong below `/api/v1` before or after any operation of ours.

An unknown address, a method that an address does not have, a body that is too large, a fault of
the server: Django answers these with pages, which a program cannot read.
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus

from django.http import HttpRequest, HttpResponse

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


class ProblemDocuments:
    """Django middleware."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Replace an error's page."""
        response = self._get_response(request)
        is_error = response.status_code >= 400
        if not is_error or not request.path.startswith(PREFIX):
            return response
        if response.headers.get("Content-Type", "").startswith(CONTENT_TYPE):
            return response
        status = response.status_code
        headers = {k: response.headers[k] for k in KEPT_HEADERS if k in response.headers}
        detail = WORDS.get(status, HTTPStatus(status).phrase)
        return problem_response(Problem(status, detail, headers=headers))
