"""Who gets in, with what, and what they are told who do not."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from tests.webapp.api.conftest import Program
from tests.webapp.stories import launch
from webapp.accounts.models import Membership, Role, User
from webapp.api.models import ApiToken
from webapp.api.scopes import Scope
from webapp.api.services import create_token, find_token, revoke_token
from webapp.body_limit import Scope as AsgiScope


def test_a_token_says_whom_it_acts_for(program: Program) -> None:
    answer = program.get("/me")
    assert answer.status_code == 200
    document = answer.json()
    assert document["user"] == "ada"
    assert document["scopes"] == ["read", "launch", "control", "data"]
    assert [(p["slug"], p["role"]) for p in document["projects"]] == [("main", "researcher")]
    token = ApiToken.objects.get()
    assert token.last_used_from == "127.0.0.1"
    assert token.last_used_at is not None


def test_only_the_hash_is_stored(ada: User) -> None:
    token, secret = create_token(ada, "x", [Scope.READ])
    stored = [str(value) for value in ApiToken.objects.filter(pk=token.pk).values_list()[0]]
    assert not any(secret in text for text in stored)
    assert secret.startswith(token.prefix)
    assert find_token(secret) == token
    assert find_token(secret[:-1]) is None


def test_without_a_token_the_answer_says_how_to_get_one(client: Client, db: None) -> None:
    for headers in ({}, {"Authorization": "Basic YTpi"}, {"Authorization": "Bearer "}):
        answer = client.get("/api/v1/me", headers=headers)
        assert answer.status_code == 401
        assert answer["WWW-Authenticate"] == 'Bearer realm="temper"'
        assert answer["Content-Type"] == "application/problem+json"
        assert "API tokens" in answer.json()["detail"]


def test_a_session_opens_no_operation(browser: Client) -> None:
    assert browser.get("/api/v1/me").status_code == 401
    assert browser.post("/api/v1/runs", {}, content_type="application/json").status_code == 401


@pytest.mark.parametrize("fault", ["unknown", "expired", "revoked", "locked out"])
def test_a_bad_token_is_refused_with_its_reason(ada: User, fault: str) -> None:
    token, secret = create_token(ada, "x", [Scope.READ])
    if fault == "unknown":
        secret += "x"
    elif fault == "expired":
        ApiToken.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    elif fault == "revoked":
        revoke_token(token)
    else:
        User.objects.filter(pk=ada.pk).update(is_active=False)
    answer = Program(secret).get("/me")
    assert answer.status_code == 401
    assert 'error="invalid_token"' in answer["WWW-Authenticate"]
    words = {"unknown": "no such token", "locked out": "not usable"}.get(fault, fault)
    assert words in answer.json()["detail"]


def test_a_missing_scope_is_named(ada: User, program_of: Callable[..., Program]) -> None:
    reader = program_of(ada, Scope.READ)
    answer = reader.post("/runs", {"name": "x"})
    assert answer.status_code == 403
    assert 'error="insufficient_scope", scope="launch"' in answer["WWW-Authenticate"]
    assert "launch" in answer.json()["detail"]


def test_an_admins_rights_need_the_scope_admin(
    ada: User, bob: User, program_of: Callable[..., Program]
) -> None:
    run = launch(bob)
    Membership.objects.filter(user=ada).update(role=Role.ADMIN)
    refused = program_of(ada, Scope.CONTROL).post(f"/runs/{run.number}/stop")
    assert refused.status_code == 403
    assert 'scope="admin"' in refused["WWW-Authenticate"]
    assert "a run of bob's" in refused.json()["detail"]
    done = program_of(ada, Scope.CONTROL, Scope.ADMIN).post(f"/runs/{run.number}/stop")
    assert done.status_code == 200
    assert done.json()["state"] == "stopped"


def test_guessing_is_slowed_down_but_good_tokens_still_work(program: Program) -> None:
    guesser = Program("temper_guess")
    statuses = [guesser.get("/me").status_code for _ in range(22)]
    assert statuses[:20] == [401] * 20
    assert statuses[20:] == [429, 429]
    assert guesser.get("/me")["Retry-After"] == "60"
    assert program.get("/me").status_code == 200


def test_only_tokens_for_data_may_send_large_bodies(ada: User) -> None:
    from webapp.api.auth import may_upload  # noqa: PLC0415 - beside what it is compared with

    def scope(secret: str) -> AsgiScope:
        return {"headers": [(b"authorization", f"Bearer {secret}".encode())]}

    _, data = create_token(ada, "x", [Scope.DATA])
    _, read = create_token(ada, "x", [Scope.READ])
    assert may_upload(scope(data))
    assert not may_upload(scope(read))
    assert not may_upload(scope("temper_x"))
    Membership.objects.filter(user=ada).update(role=Role.VIEWER)
    assert not may_upload(scope(data))
    assert not may_upload({"headers": []})


def test_the_page_shows_a_secret_once(browser: Client, ada: User) -> None:
    page = browser.get("/accounts/tokens/").content.decode()
    assert "No program acts for you" in page
    made = browser.post(
        "/accounts/tokens/", {"name": "<b>x</b>", "scopes": ["read", "data"], "days": "7"}
    )
    assert made.status_code == 201
    html = made.content.decode()
    token = ApiToken.objects.get()
    secret = html.split('id="fresh-secret">')[1].split("<")[0]
    assert find_token(secret) == token
    assert token.scopes == ["read", "data"]
    assert timedelta(days=6) < token.expires_at - timezone.now() <= timedelta(days=7)
    assert "<b>x</b>" not in html
    assert "no-store" in made["Cache-Control"]
    assert secret not in browser.get("/accounts/tokens/").content.decode()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"scopes": ["read"], "days": "7"}, "Say what the token is for"),
        ({"name": "x", "days": "7"}, "Choose at least one scope."),
        ({"name": "x", "scopes": ["root"], "days": "7"}, "root is no scope."),
        ({"name": "x", "scopes": ["read"], "days": "366"}, "A whole number from 1 to 365."),
        ({"name": "x", "scopes": ["read"], "days": ""}, "A whole number from 1 to 365."),
    ],
)
def test_a_wrong_form_says_why(browser: Client, values: dict[str, str], message: str) -> None:
    answer = browser.post("/accounts/tokens/", values)
    assert answer.status_code == 422
    assert message in answer.content.decode()
    assert not ApiToken.objects.exists()


def test_revoking_asks_first_and_is_for_owners(browser: Client, ada: User, bob: User) -> None:
    own, secret = create_token(ada, "mine", [Scope.READ])
    other, _ = create_token(bob, "his", [Scope.READ])
    assert browser.post(f"/accounts/tokens/{other.pk}/revoke/").status_code == 404
    assert (
        "Revoke this token?" in browser.get(f"/accounts/tokens/{own.pk}/revoke/").content.decode()
    )
    assert find_token(secret).state == "valid"
    assert browser.post(f"/accounts/tokens/{own.pk}/revoke/").status_code == 302
    assert Program(secret).get("/me").status_code == 401
    assert "Ended (1)" in browser.get("/accounts/tokens/").content.decode()
    other.refresh_from_db()
    assert other.state == "valid"


def test_the_page_needs_a_session(client: Client, db: None) -> None:
    assert client.get("/accounts/tokens/")["Location"].startswith("/accounts/login/")
    assert client.get("/api/v1/docs")["Location"].startswith("/accounts/login/")


def test_the_command_makes_lists_and_revokes(ada: User, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("api_token", "ada", "--scope=read", "--scope=launch", "--days=1")
    secret = capsys.readouterr().out.strip()
    assert Program(secret).get("/me").json()["scopes"] == ["read", "launch"]
    call_command("api_token", "ada", "--list")
    prefix, state, *_ = capsys.readouterr().out.split("\t")
    assert (secret.startswith(prefix), state) == (True, "valid")
    call_command("api_token", "ada", "--revoke", prefix)
    assert Program(secret).get("/me").status_code == 401
    for wrong in (["nobody"], ["ada", "--days=0"], ["ada", "--revoke", "temper_zzzzzz"]):
        with pytest.raises(CommandError):
            call_command("api_token", *wrong)
