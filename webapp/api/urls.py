"""Addresses below `/api/v1`. The document and its page are for who is signed in or has a token."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path

from webapp.api.auth import BearerToken
from webapp.api.problems import Problem, problem_response
from webapp.api.scopes import Scope
from webapp.api.site import api

PAGES = frozenset({"openapi-view"})
"""Pages for people: Django's own sign-in guards them. Operations have their tokens instead."""


def _document(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """The document for a browser that is signed in, or for a token that may read."""

    def guarded(request: HttpRequest, **kwargs: Any) -> HttpResponse:
        if not request.user.is_authenticated:
            try:
                BearerToken(Scope.READ)(request)
            except Problem as problem:
                return problem_response(problem)
        return view(request, **kwargs)

    return guarded


def _opened(pattern: Any) -> Any:
    """Let a token in where a session would be asked for."""
    if isinstance(pattern, URLPattern) and pattern.name not in PAGES:
        view: Any = pattern.callback
        if pattern.name == "openapi-json":
            view = pattern.callback = _document(view)
        elif pattern.name == "api-root":
            view = pattern.callback = _nothing
        view.login_required = False
    return pattern


def _nothing(_: HttpRequest) -> HttpResponse:
    """The bare prefix."""
    return problem_response(Problem(404, "Look at /api/v1/docs for what there is."))


_patterns, _app, _namespace = api.urls
urlpatterns = [path("", ([_opened(p) for p in _patterns], _app, _namespace))]
