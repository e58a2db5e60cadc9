"""What programs do, and what is done with tokens and webhooks, as entries of the audit log."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.test import AsyncClient, Client

from tests.webapp.api.conftest import Program
from tests.webapp.members import become
from tests.webapp.stories import launch
from training_core.contract.presets import TINY_COPY
from webapp.accounts.models import Project, Role, User
from webapp.api.models import ApiToken
from webapp.api.scopes import Scope
from webapp.api.services import create_token
from webapp.audit.models import AuditEntry
from webapp.audit.source import current_token
from webapp.webhooks import dispatch as webhooks_dispatch

SPEC = TINY_COPY.spec.model_dump(mode="json")
FILE = "question,answer\n" + "".join(f"{n} + 1,{n + 1}\n" for n in range(20))


def entries(kind: str) -> list[tuple[str, str, str]]:
    """(action, who, by which token) of what was done with one kind of thing, the oldest first."""
    found = AuditEntry.objects.filter(kind=kind).order_by("pk")
    return list(found.values_list("action", "actor", "token"))


def test_the_token_stands_beside_the_person(program: Program, browser: Client) -> None:
    token = str(ApiToken.objects.get())
    number = program.post("/runs", SPEC).json()["number"]
    browser.post(f"/runs/{number}/control/pause/")
    for deed in ("resume", "stop", "archive", "unarchive"):
        assert program.post(f"/runs/{number}/{deed}").status_code == 200
    program.delete(f"/runs/{number}?name={SPEC['name']}")
    assert entries("run") == [
        ("run.launch", "ada", token),
        ("run.pause", "ada", ""),
        ("run.resume", "ada", token),
        ("run.stop", "ada", token),
        ("run.archive", "ada", token),
        ("run.unarchive", "ada", token),
        ("run.delete", "ada", token),
    ]
    assert current_token.get() == ""
    assert {e.project for e in AuditEntry.objects.filter(kind="run")} == {"Main"}
    assert {e.address for e in AuditEntry.objects.filter(kind="run")} == {"127.0.0.1"}


@pytest.mark.django_db(transaction=True)
def test_the_token_is_forgotten_under_a_server_as_well(
    ada: User, async_client: AsyncClient
) -> None:
    """The server's way through the middleware, where the view runs in a thread."""
    from asgiref.sync import async_to_sync  # noqa: PLC0415 - beside what it is for

    run = launch(ada)
    _, secret = create_token(ada, "nightly", [Scope.CONTROL])

    async def ask() -> None:
        headers = {"Authorization": f"Bearer {secret}"}
        answer = await async_client.post(f"/api/v1/runs/{run.number}/pause", headers=headers)
        assert answer.status_code == 200
        assert current_token.get() == ""
        missing = await async_client.get("/api/v1/nothing", headers=headers)
        assert missing["Content-Type"] == "application/problem+json"

    async_to_sync(ask)()
    assert [by.startswith("nightly (temper_") for _, _, by in entries("run")] == [False, True]


def test_uploads_say_who_started_them(program: Program) -> None:
    token = str(ApiToken.objects.get())
    program.upload({"file": SimpleUploadedFile("sums.csv", FILE.encode())})
    assert entries("import") == [
        ("dataset.upload", "ada", token),
        ("dataset.import", "ada", token),
    ]


def test_who_starts_anothers_import_is_named(
    program: Program, bob: User, program_of: Callable[..., Program]
) -> None:
    file = SimpleUploadedFile("sums.csv", FILE.encode())
    job = program.upload({"file": file, "start": "false"}).json()
    become(bob, Role.CURATOR)
    body = {"name": "sums", "prompt": "question", "answer": "answer"}
    assert program_of(bob).post(f"/imports/{job['id']}/start", body).status_code == 200
    assert [who for _, who, _ in entries("import")] == ["ada", "bob"]


def test_what_was_refused_leaves_no_entry(program: Program) -> None:
    assert program.post("/runs", {**SPEC, "seed": -1}).status_code == 422
    assert entries("run") == []


def test_tokens_are_noted_without_their_secret(browser: Client, ada: User) -> None:
    posted = {"name": "nightly", "scopes": ["read", "data"], "days": "7"}
    page = browser.post("/accounts/tokens/", posted).content.decode()
    secret = page.split('id="fresh-secret">')[1].split("<")[0]
    browser.post(f"/accounts/tokens/{ApiToken.objects.get().pk}/revoke/")
    call_command("api_token", "ada")
    assert entries("token") == [
        ("token.make", "ada", ""),
        ("token.revoke", "ada", ""),
        ("token.make", "", ""),
    ]
    made = AuditEntry.objects.filter(kind="token").last()
    assert made is not None
    assert made.after == {"for": "ada", "scopes": ["read", "data"], "days": 7}
    assert secret not in str(list(AuditEntry.objects.values()))


def test_webhooks_are_noted_without_their_path(
    browser: Client, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhooks_dispatch, "send_task", lambda *_: True)
    become(ada, Role.ADMIN)
    url = "https://example.org/hook/a-secret-path"
    posted = {"url": url, "kinds": ["run.failed"], "project": "main"}
    assert browser.post("/accounts/webhooks/", posted).status_code == 201
    pk = AuditEntry.objects.get(action="webhook.make").key
    for deed in ("disable", "disable", "enable", "enable", "test", "delete"):
        browser.post(f"/accounts/webhooks/{pk}/{deed}/do/")
    assert [action for action, _, _ in entries("webhook")] == [
        "webhook.make",
        "webhook.disable",
        "webhook.enable",
        "webhook.delete",
    ]
    kept: Any = list(AuditEntry.objects.filter(kind="webhook").values())
    assert {entry["label"] for entry in kept} == {"example.org"}
    assert {entry["project"] for entry in kept} == {Project.objects.main().name}
    assert "a-secret-path" not in str(kept)


def test_page_and_file_show_the_token(
    browser: Client, ada: User, program_of: Callable[..., Program]
) -> None:
    become(ada, Role.ADMIN)
    program_of(ada, Scope.LAUNCH).post("/runs", SPEC)
    token = str(ApiToken.objects.get())
    page = browser.get("/projects/main/audit/").content.decode()
    assert f"by the token <bdi>{token}</bdi>" in page
    text = browser.get("/projects/main/audit.csv").content.decode()
    assert [row["token"] for row in csv.DictReader(io.StringIO(text))] == [token]
