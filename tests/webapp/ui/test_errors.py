"""A database that is away is told as what it is, by pages and endpoints alike."""

from __future__ import annotations

import pytest
from django.db import OperationalError
from django.db.backends.utils import CursorWrapper
from django.test import Client


@pytest.fixture
def nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OperationalError("connection refused")

    monkeypatch.setattr(CursorWrapper, "execute", refuse)


@pytest.mark.django_db
@pytest.mark.parametrize("address", ["/runs/", "/datasets/", "/api/runs/curves?runs=1"])
def test_while_the_database_is_away(client: Client, nobody_listens: None, address: str) -> None:
    client.raise_request_exception = False
    client.cookies["sessionid"] = "0123456789abcdefghijklmnopqrstuv"
    answer = client.get(address)
    assert answer.status_code == 503
    assert answer["Retry-After"] == "2"
    if address.startswith("/api/"):
        assert "database cannot be reached" in answer.json()["error"]
    else:
        assert b"The database cannot be reached" in answer.content


def test_a_name_that_is_not_allowed_says_which_variable_allows_it(client: Client) -> None:
    answer = client.get("/runs/", headers={"host": "temper.lab:8000"})
    assert answer.status_code == 400
    assert b"<code>temper.lab:8000</code>" in answer.content
    assert b"add <code>temper.lab</code> to <code>TEMPER_ALLOWED_HOSTS</code>" in answer.content
    hostile = client.get("/runs/", headers={"host": "<script>alert(1)</script>"})
    assert hostile.status_code == 400
    assert b"<script>alert" not in hostile.content


def test_any_other_error_stays_an_error(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def break_down(*_: object) -> None:
        raise RuntimeError("a mistake")

    monkeypatch.setattr(
        "django.contrib.sessions.middleware.SessionMiddleware.process_request", break_down
    )
    client.raise_request_exception = False
    assert client.get("/runs/").status_code == 500
