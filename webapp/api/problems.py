"""Errors of `/api/v1` as problem documents (RFC 9457).

`errors` lists what is wrong with which field, in the words of the launch form. Everything that the
services refuse becomes one here, so that no operation formats an error of its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, NamedTuple

from django.http import HttpResponse
from pydantic import BaseModel, ConfigDict

from training_core.contract.field_errors import FieldError
from webapp.runs.forms import legible

CONTENT_TYPE = "application/problem+json"
NO_HEADERS: Mapping[str, str] = MappingProxyType({})


class FieldProblem(BaseModel):
    """What is wrong with one field."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    field: str
    """Field in dotted form, such as `stages.0.steps`; empty for the whole document."""
    message: str
    """What is wrong and what would be right."""
    line: int | None = None
    """Line of the YAML text, where YAML was sent."""


class ProblemDocument(BaseModel):
    """An error, as RFC 9457 writes them."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    type: str = "about:blank"
    """Always `about:blank`: the status says what kind of error it is."""
    title: str
    """The status in words."""
    status: int
    """HTTP status code."""
    detail: str
    """What went wrong and what to do about it."""
    errors: list[FieldProblem] = []
    """What is wrong at which field; empty when it is no field's fault."""


class Fault(NamedTuple):
    """A field error with its line in a YAML text."""

    path: str
    message: str
    line: int | None


class Problem(Exception):
    """Ends an operation with a problem document."""

    def __init__(
        self,
        status: int,
        detail: str,
        errors: Sequence[FieldError | Fault] = (),
        headers: Mapping[str, str] = NO_HEADERS,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.errors = list(errors)
        self.headers = headers


def problem_response(problem: Problem) -> HttpResponse:
    """The HTTP answer."""
    document = ProblemDocument(
        title=HTTPStatus(problem.status).phrase,
        status=problem.status,
        detail=legible(problem.detail),
        errors=[_field_problem(error) for error in problem.errors],
    )
    return HttpResponse(
        json.dumps(document.model_dump(), ensure_ascii=False),
        status=problem.status,
        content_type=CONTENT_TYPE,
        headers=dict(problem.headers),
    )


def bad_fields(errors: Sequence[FieldError | Fault]) -> Problem:
    """422 with the first of the errors as its sentence."""
    first = errors[0]
    place = f"{first.path}: " if first.path else ""
    more = f" And {len(errors) - 1} more." if len(errors) > 1 else ""
    return Problem(422, f"{place}{first.message}{more}", errors)


def _field_problem(error: FieldError | Fault) -> FieldProblem:
    line: Any = getattr(error, "line", None)
    return FieldProblem(field=legible(error.path), message=legible(error.message), line=line)
