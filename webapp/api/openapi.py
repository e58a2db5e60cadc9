"""What ninja cannot know about the OpenAPI document: errors, scopes, examples, the RunSpec.

Called by `webapp.api.site` each time the document is asked for. It changes the document in place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic.json_schema import models_json_schema

from training_core.contract.spec import RunSpec
from webapp.api.examples import EXAMPLES
from webapp.api.problems import CONTENT_TYPE, ProblemDocument
from webapp.api.scopes import Scope

REF = "#/components/schemas/{model}"
ERRORS = {
    400: "The request cannot be read.",
    401: "No token, or one that is unknown, expired or revoked.",
    403: "The token lacks the scope, or the thing belongs to somebody else.",
    404: "There is no such thing, or you may not see it.",
    409: "It cannot do that in the state that it is in.",
    413: "The request is too large.",
    415: "The body is of a type that this address does not read.",
    422: "A field is wrong; `errors` says which and how.",
    429: "Too many requests with a bad token came from your address.",
}
ELSEWHERE = {
    410: "It was there and is not any more.",
    416: "The range begins beyond the end; `Content-Range` says where that is.",
}
"""Errors of single operations, which name them in their `openapi_extra`."""
METHODS = frozenset({"get", "post", "put", "patch", "delete"})


def complete(document: dict[str, Any], scopes: Mapping[str, Scope]) -> None:
    """Add schemas, error answers, scopes (by operation) and examples."""
    components = document["components"]
    components["schemas"].update(_schemas())
    components["responses"] = {
        f"Error{status}": _error(words) for status, words in (ERRORS | ELSEWHERE).items()
    }
    for operation in operations(document):
        operation_id = operation["operationId"]
        operation["description"] += f"\n\nNeeds the scope `{scopes[operation_id]}`."
        operation["x-scope"] = scopes[operation_id].value
        for status in ERRORS:
            operation["responses"][status] = {"$ref": f"#/components/responses/Error{status}"}
        _add_example(operation, operation_id)


def operations(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every operation of a document."""
    for methods in document["paths"].values():
        yield from (operation for method, operation in methods.items() if method in METHODS)


def _schemas() -> dict[str, Any]:
    """The documents that operations read or write by hand."""
    models: list[Any] = [(RunSpec, "validation"), (ProblemDocument, "serialization")]
    _, schema = models_json_schema(models, ref_template=REF)
    return dict(schema["$defs"])


def _error(words: str) -> dict[str, Any]:
    """One kind of error as an answer."""
    schema = {"$ref": REF.format(model="ProblemDocument")}
    return {"description": words, "content": {CONTENT_TYPE: {"schema": schema}}}


def _add_example(operation: dict[str, Any], operation_id: str) -> None:
    """What is sent and what comes back, where it is JSON."""
    example = EXAMPLES.get(operation_id)
    if example is None:
        return
    body = operation.get("requestBody", {}).get("content", {})
    for content in body.values():
        if example.sent is not None and content["schema"].get("type") != "string":
            content["example"] = example.sent
    for status, answer in operation["responses"].items():
        for content in answer.get("content", {}).values():
            if str(status).startswith("2") and example.answered is not None:
                content["example"] = example.answered
