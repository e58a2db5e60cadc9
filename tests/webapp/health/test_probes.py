"""`/healthz` and `/readyz`: what a load balancer is told, and what a stranger is not."""

from __future__ import annotations

import asyncio
import shutil
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.test import AsyncClient, Client

from webapp.health import readiness

STRANGE_HOST = {"HTTP_HOST": "10.1.2.3:8000"}
"""A name that is not allowed: load balancers ask by address."""


def parts(answer: Any) -> dict[str, str]:
    return {part["name"]: part["state"] for part in answer.json()["parts"]}


def test_alive_asks_nothing_and_nobody(client: Client) -> None:
    answer = client.get("/healthz", **STRANGE_HOST)
    assert (answer.status_code, answer.content) == (200, b"alive\n")
    assert answer.headers["Cache-Control"] == "no-store"
    assert "Set-Cookie" not in answer.headers


def test_only_reading_is_a_probe(client: Client) -> None:
    assert client.post("/healthz").status_code in {302, 403, 404}


@pytest.mark.django_db
def test_ready_names_each_part(client: Client) -> None:
    answer = client.get("/readyz", **STRANGE_HOST)
    assert answer.status_code == 200, answer.content
    assert answer.json()["status"] == "ready"
    assert parts(answer) == {
        "database": "ok",
        "migrations": "ok",
        "valkey": "ok",
        "disk": "ok",
    }


def test_neither_redirect_nor_host_name_stands_before_a_probe(
    client: Client, settings: SimpleNamespace
) -> None:
    settings.SECURE_SSL_REDIRECT = True
    settings.ALLOWED_HOSTS = ["temper.example"]
    assert client.get("/healthz", **STRANGE_HOST).status_code == 200
    assert client.get("/readyz", **STRANGE_HOST).status_code in {200, 503}
    assert client.get("/runs/", HTTP_HOST="temper.example").status_code == 301


@pytest.mark.django_db
def test_without_valkey_it_is_degraded_and_pages_open(
    client: Client, settings: SimpleNamespace
) -> None:
    settings.REDIS_URL = "redis://:geheim@127.0.0.1:9/0"
    answer = client.get("/readyz")
    assert answer.status_code == 200
    assert answer.json()["status"] == "degraded"
    assert parts(answer)["valkey"] == "degraded"
    assert "geheim" not in answer.content.decode()
    assert "127.0.0.1" not in answer.content.decode()
    assert client.get("/accounts/login/").status_code == 200


def test_without_a_database_it_is_not_ready_but_alive(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> psycopg.Connection[Any]:
        raise psycopg.OperationalError('connection to "db.internal" as user temper failed')

    monkeypatch.setattr(readiness, "_connect", refuse)
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["status"] == "unready"
    assert parts(answer)["database"] == "failed"
    assert "db.internal" not in answer.content.decode(), "the log has it, a stranger not"
    assert client.get("/healthz").status_code == 200


def test_a_dead_address_is_given_up_soon(settings: SimpleNamespace) -> None:
    """The real path: nobody listens there."""
    connection_settings = connection.settings_dict
    before = connection_settings["HOST"], connection_settings["PORT"]
    connection_settings["HOST"], connection_settings["PORT"] = "127.0.0.1", "9"
    try:
        found = readiness.look()
    finally:
        connection_settings["HOST"], connection_settings["PORT"] = before
    assert found.part("database").state == "failed"
    assert found.state == "failed"


@pytest.mark.django_db
def test_a_schema_behind_the_code_says_what_to_run(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = readiness.known_migrations() | {("runs", "9999_from_tomorrow")}
    monkeypatch.setattr(readiness, "known_migrations", lambda: known)
    answer = client.get("/readyz")
    assert answer.status_code == 503
    words = {part["name"]: part["words"] for part in answer.json()["parts"]}["migrations"]
    assert words == "1 not applied: run `manage.py up` or `manage.py migrate`."


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("free", "state"), [(999_999_999, "degraded"), (1_000_000_000, "ok")], ids=["low", "enough"]
)
def test_a_full_disk_is_told(
    client: Client, monkeypatch: pytest.MonkeyPatch, free: int, state: str
) -> None:
    usage = SimpleNamespace(total=2 * free, used=free, free=free)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    answer = client.get("/readyz")
    assert answer.status_code == 200
    assert parts(answer)["disk"] == state


def test_many_askers_share_a_look(monkeypatch: pytest.MonkeyPatch, client: Client) -> None:
    looked = []
    part = readiness.Part("database", "ok", "")
    monkeypatch.setattr(readiness, "look", lambda: looked.append(1) or readiness.Readiness((part,)))
    for _ in range(5):
        assert client.get("/readyz").status_code == 200
    assert len(looked) == 1


def test_the_asynchronous_server_answers_too() -> None:
    async def ask() -> tuple[int, int]:
        client = AsyncClient()
        alive = await client.get("/healthz")
        figures = await client.get("/metrics")
        return alive.status_code, figures.status_code

    assert asyncio.run(ask()) == (200, 403)
