"""Programs of Ada and Bob: clients with a token."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client

from webapp.accounts.models import User
from webapp.api.scopes import Scope
from webapp.api.services import create_token
from webapp.datasets import dispatch as datasets_dispatch
from webapp.registry import dispatch as registry_dispatch
from webapp.runs import dispatch as runs_dispatch


class Program:
    """Sends requests as a program does: a token, no cookies, CSRF checks on."""

    def __init__(self, secret: str) -> None:
        self.client = Client(enforce_csrf_checks=True, raise_request_exception=False)
        self.headers = {"Authorization": f"Bearer {secret}"}

    def get(self, address: str, **query: Any) -> HttpResponse:
        """GET /api/v1…"""
        return self.client.get(f"/api/v1{address}", query, headers=self.headers)

    def post(self, address: str, document: Any = None, **headers: str) -> HttpResponse:
        """POST a JSON document."""
        return self.client.post(
            f"/api/v1{address}",
            b"" if document is None else json.dumps(document).encode(),
            content_type="application/json",
            headers={**self.headers, **headers},
        )

    def send(self, address: str, body: bytes, content_type: str) -> HttpResponse:
        """POST these bytes."""
        return self.client.post(
            f"/api/v1{address}", body, content_type=content_type, headers=self.headers
        )

    def upload(self, values: dict[str, Any], **headers: str) -> HttpResponse:
        """POST a file with its form."""
        return self.client.post("/api/v1/imports", values, headers={**self.headers, **headers})

    def delete(self, address: str) -> HttpResponse:
        """DELETE /api/v1…"""
        return self.client.delete(f"/api/v1{address}", headers=self.headers)


@pytest.fixture
def program_of() -> Callable[..., Program]:
    """Makes a program of a user, with every scope but admin unless told otherwise."""

    def make(user: User, *scopes: Scope) -> Program:
        chosen = scopes or (Scope.READ, Scope.LAUNCH, Scope.CONTROL, Scope.DATA)
        _, secret = create_token(user, "test", chosen)
        return Program(secret)

    return make


@pytest.fixture
def program(ada: User, program_of: Callable[..., Program]) -> Program:
    """Ada's program."""
    return program_of(ada)


@pytest.fixture(autouse=True)
def no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """No worker listens here; a message would only time out."""
    monkeypatch.setattr(runs_dispatch, "send_task", lambda *_: True)
    monkeypatch.setattr(datasets_dispatch, "send_task", lambda *_: True)
    monkeypatch.setattr(registry_dispatch, "send_task", lambda *_: True)
