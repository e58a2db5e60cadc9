"""Every operation of the document, called with what its schema allows and with what it does not,
over HTTP against the real server: no 500, answers as the document says, nobody in without a token.

One walk over all operations with one server and one of everything: the requests are the same each
time, and a failure names the operation and the request.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import httpx2
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import Case, GenerationMode
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_schema_conformance,
    status_code_conformance,
)

from tests.browser.session import free_port, start_server, wait_until_up
from tests.engines import Engines
from tests.webapp.stories import Story, launch
from webapp.accounts.models import User
from webapp.api.openapi import operations
from webapp.api.scopes import Scope
from webapp.api.services import create_token
from webapp.api.site import api

DOCUMENT: dict[str, Any] = json.loads(json.dumps(api.get_openapi_schema(path_prefix="/api/v1/")))
SCHEMA = schemathesis.openapi.from_dict(DOCUMENT)
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
CALLS = [
    (method, path)
    for path, methods in DOCUMENT["paths"].items()
    for method in methods
    if method in {"get", "post", "delete"}
]
QUICK = settings(
    max_examples=8,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


class House(NamedTuple):
    """A server with one of everything, and a token that may do anything."""

    url: str
    secret: str
    run: int


@pytest.fixture
def server(engines: Engines, transactional_db: None) -> Iterator[str]:
    """The real server, without a broker that anybody listens to."""
    port = free_port()
    log = engines.home / "fuzz-server.log"
    process = start_server(engines, port, log)
    try:
        wait_until_up(f"http://127.0.0.1:{port}", process, log)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def house(server: str) -> House:
    ada = User.objects.create_user("ada")
    _, secret = create_token(ada, "all", list(Scope))
    story = Story(launch(ada)).start()
    story.evaluate(0, "start", "base model", 0.04)
    story.step(61, reward=float("nan")).rollouts(61).checkpoint(61, best=True).say("hello\n")
    return House(server, secret, story.run.number)


def test_answers_are_those_of_the_document(house: House) -> None:
    asked = 0
    with requests.Session() as session:
        for found in SCHEMA.get_all_operations():
            operation = found.ok()
            raw = operation.definition.raw
            asked += ask(operation, GenerationMode.POSITIVE, house, session)
            if raw["parameters"] or "requestBody" in raw:
                asked += ask(operation, GenerationMode.NEGATIVE, house, session)
    assert asked > 8 * len(CALLS)


def ask(operation: Any, mode: GenerationMode, house: House, session: requests.Session) -> int:
    """Send some requests of an operation and judge the answers; how many there were."""
    count = 0
    names_run = "{number}" in operation.path and mode == GenerationMode.POSITIVE
    known = {"number": house.run} if names_run else None  # else all would end at "no such run"

    @QUICK
    @given(case=operation.as_strategy(mode, path_parameters=known))
    def send(case: Case) -> None:
        nonlocal count
        count += 1
        headers = {"Authorization": f"Bearer {house.secret}"}
        case.call_and_validate(house.url, session, headers, checks=CHECKS)

    send()
    return count


def test_nobody_gets_in_without_a_token(house: House) -> None:
    for method, path in CALLS:
        address = path.replace("{number}", str(house.run)).replace("{slug}", "tiny-model")
        address = address.replace("{group}", "1").replace("{dataset}", "1")
        address = address.replace("{export_id}", "6b0f7b1e-0000-4000-8000-000000000000")
        address = address.replace("{import_id}", "6b0f7b1e-0000-4000-8000-000000000000")
        for headers in ({}, {"Authorization": "Bearer temper_wrong"}):
            answer = httpx2.request(method, house.url + address, headers=headers)
            assert answer.status_code in {401, 429}, f"{method} {path}"
            assert answer.headers["Content-Type"] == "application/problem+json"


def test_the_walk_meets_every_operation() -> None:
    assert len(CALLS) == len(list(operations(DOCUMENT))) > 30
