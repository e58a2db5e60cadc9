"""The OpenAPI document is whole: summaries, descriptions, scopes, examples that are true."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest
from django.test import Client

from tests.webapp.api.conftest import Program
from webapp.api.openapi import operations
from webapp.api.scopes import Scope
from webapp.api.site import api

DOCUMENT: dict[str, Any] = dict(api.get_openapi_schema(path_prefix="/api/v1/"))
OPERATIONS = {operation["operationId"]: operation for operation in operations(DOCUMENT)}


def plain(value: Any) -> Any:
    """Status codes as texts, as JSON has them."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


def test_there_are_many() -> None:
    assert len(OPERATIONS) >= 30


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_says_what_it_does(name: str) -> None:
    operation = OPERATIONS[name]
    assert operation["summary"]
    assert len(operation["description"]) > 40
    assert operation["x-scope"] in set(Scope)
    assert operation["security"] == [{"BearerToken": []}]
    for parameter in operation["parameters"]:
        assert parameter.get("description"), f"{name}: {parameter['name']}"


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_example_fits_its_schema(name: str) -> None:
    places = [OPERATIONS[name].get("requestBody", {})]
    places += [a for s, a in OPERATIONS[name]["responses"].items() if str(s).startswith("2")]
    for place in places:
        for kind, content in place.get("content", {}).items():
            if kind in {"application/yaml", "multipart/form-data"}:
                continue
            schema = {**content["schema"], "components": plain(DOCUMENT["components"])}
            jsonschema_rs.validate(schema, content["example"])


def test_the_document_is_for_those_who_may_read(
    program: Program, client: Client, browser: Client
) -> None:
    assert Client().get("/api/v1/openapi.json").status_code == 401
    assert program.get("/openapi.json").json()["openapi"].startswith("3.1")
    assert browser.get("/api/v1/openapi.json").status_code == 200
    page = browser.get("/api/v1/docs").content.decode()
    assert "https://" not in page
    assert "/accounts/tokens/" in page
