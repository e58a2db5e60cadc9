"""`/api/v1` itself: its routers, what its exceptions become, its OpenAPI document.

Read by `webapp.api.urls` alone. Errors are problem documents whoever raises them; what nobody
foresaw goes on to Django, whose 500 the middleware turns into one as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NoReturn

from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.http import Http404, HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError, ValidationErrorContext
from ninja.openapi.docs import Swagger
from ninja.openapi.schema import OpenAPISchema
from ninja.parser import Parser
from ninja.renderers import JSONRenderer

from training_core.contract.field_errors import sentences_at_fields
from webapp.api.auth import REALM, BearerToken
from webapp.api.bodies import read_json
from webapp.api.openapi import complete
from webapp.api.problems import Problem, bad_fields, problem_response
from webapp.api.routes import (
    control,
    datasets,
    exports,
    house,
    imports,
    launch,
    metrics,
    results,
    runs,
)
from webapp.api.scopes import Scope
from webapp.registry.refusals import ExportRefused
from webapp.runs.models import Run
from webapp.runs.moves import MoveLost
from webapp.runs.refusals import ControlRefused

DESCRIPTION = """\
Runs, what came of them, and datasets, for programs. Send a token as
`Authorization: Bearer temper_…`; make one under *Account → API tokens* or with
`manage.py api-token`. Errors are problem documents (RFC 9457) whose `errors` say what is wrong with
which field, in the words of the launch form. Your roles decide as on the pages, the token's scopes
take away from that. Lists come in pages: give `next_cursor` as `cursor`.
Numbers that are not finite are the words `nan`, `inf` and `-inf`.
"""


class StrictRenderer(JSONRenderer):
    """JSON without NaN: one that slipped through is an error here, not in the caller's parser."""

    json_dumps_params: Mapping[str, Any] = MappingProxyType({"allow_nan": False})


class StrictParser(Parser):
    """JSON as the launch reads it: no NaN, no doubled keys, an object."""

    def parse_body(self, request: HttpRequest) -> dict[str, Any]:
        """The body. Raises Problem, which ninja wraps into an HttpError."""
        return read_json(request.body)


class DocumentPage(Swagger):
    """The document for people, with a way back and in the visitor's theme."""

    template = "api/docs.html"


class TemperApi(NinjaAPI):
    """ninja with our errors and a complete document."""

    def validation_error_from_error_contexts(
        self, error_contexts: list[ValidationErrorContext[Any]]
    ) -> ValidationError:
        """Keep what was given, so that the sentence can show it; paths begin at the parameter."""
        items: list[dict[str, Any]] = []
        for context in error_contexts:
            flat = getattr(context.model, "__ninja_flatten_map_reverse__", {})
            body = getattr(context.model, "__read_from_single_attr__", None)
            for item in context.pydantic_validation_error.errors(include_url=False):
                place = tuple(flat.get(item["loc"], item["loc"]))
                if body is not None and place[:1] == (body,):
                    place = place[1:]
                items.append({**item, "loc": place})
        return ValidationError(items)

    def get_openapi_schema(
        self, *, path_prefix: str | None = None, path_params: dict[str, Any] | None = None
    ) -> OpenAPISchema:
        """The document, with what ninja cannot know."""
        document = super().get_openapi_schema(path_prefix=path_prefix, path_params=path_params)
        complete(document, self._scopes())
        return document

    def _scopes(self) -> dict[str, Scope]:
        """The scope that each operation asks for, by the operation's id."""
        return {
            operation.operation_id or "": callback.scope
            for router in self._get_bound_routers()
            for view in router.path_operations.values()
            for operation in view.operations
            for callback in operation.auth_callbacks
            if isinstance(callback, BearerToken)
        }


api = TemperApi(
    title="Temper",
    version="1",
    description=DESCRIPTION,
    urls_namespace="api",
    renderer=StrictRenderer(),
    parser=StrictParser(),
    docs=DocumentPage({"validatorUrl": None, "docExpansion": "list"}),
)
for _module in (house, runs, launch, control, metrics, results, exports, datasets, imports):
    api.add_router("", _module.router)


def _handle(kind: type[Exception], make: Callable[[Any], Problem]) -> None:
    """Have one kind of exception become a problem."""

    def handler(_: HttpRequest, error: Exception | type[Exception]) -> HttpResponse:
        return problem_response(make(error))

    api.add_exception_handler(kind, handler)


def _unwrapped(error: HttpError) -> Problem:
    """Our own problem where ninja has wrapped one, else its words."""
    if isinstance(error.__cause__, Problem):
        return error.__cause__
    return Problem(error.status_code, f"{error.message}.")


def _raise(_: HttpRequest, error: Exception | type[Exception]) -> NoReturn:
    """Let Django deal with what nobody foresaw: it logs it and answers 500."""
    raise error


api.add_exception_handler(Exception, _raise)
_handle(Problem, lambda problem: problem)
_handle(Http404, lambda error: Problem(404, str(error) or "There is no such thing."))
_handle(PermissionDenied, lambda error: Problem(403, str(error) or "You may not do that."))
_handle(ControlRefused, lambda refusal: Problem(409, refusal.message))
_handle(ExportRefused, lambda refusal: Problem(409, refusal.message))
_handle(
    MoveLost, lambda _: Problem(409, "Somebody else has just changed this run; look at it again.")
)
_handle(Run.DoesNotExist, lambda _: Problem(404, "The run has just been deleted."))
_handle(RequestDataTooBig, lambda _: Problem(413, "The body is larger than 5 MB; send less."))
_handle(ValidationError, lambda error: bad_fields(sentences_at_fields(error.errors)))
_handle(HttpError, _unwrapped)
_handle(
    AuthenticationError,
    lambda _: Problem(401, "This address needs a token.", headers={"WWW-Authenticate": REALM}),
)
