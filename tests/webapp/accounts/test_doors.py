"""The ways in: one limit on failed attempts, no secrets in logs, nothing left from a library."""

from __future__ import annotations

import logging

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse

from webapp.accounts.log_filter import HideSecrets
from webapp.accounts.models import User
from webapp.accounts.services import create_login_link

pytestmark = pytest.mark.django_db


def test_a_link_checker_is_answered(client: Client, ada: User) -> None:
    link = create_login_link(ada)
    assert client.head(link).status_code == 200
    assert client.post(link).status_code == 302


@pytest.mark.parametrize("path", ["", "done/", "key/1-set-password/", "key/done/"])
def test_nobody_is_promised_a_mail(browser: Client, path: str) -> None:
    address = f"/accounts/password/reset/{path}"
    for send in (browser.get, browser.post):
        assert send(address).status_code == 404
    assert Client().get(address)["Location"].startswith(reverse("account_login"))


def test_the_admin_has_no_door_of_its_own(client: Client) -> None:
    answer = client.get("/admin/login/?next=/admin/")
    assert answer.status_code == 302
    assert answer["Location"].startswith(reverse("account_login"))
    assert client.post("/admin/login/", {"username": "ada", "password": "x"}).status_code == 302


def test_failed_attempts_are_limited(client: Client, ada: User) -> None:
    answers = [
        client.post(reverse("account_login"), {"login": "ada", "password": f"wrong-{i}"})
        for i in range(12)
    ]
    assert "Too many failed" in answers[-1].content.decode()
    right = client.post(reverse("account_login"), {"login": "ada", "password": "a-long-password"})
    assert right.status_code == 200, "the right password opens nothing while the door is shut"


@pytest.mark.parametrize("line", ["Gone: /accounts/link/s3cret/", 'GET "/accounts/link/s3cret"'])
def test_secrets_stay_out_of_logs(line: str) -> None:
    plain = logging.LogRecord("django", 30, "", 0, line, None, None)
    filled = logging.LogRecord("django", 30, "", 0, "%s: %s", ("Said", line), None)
    for record in (plain, filled):
        assert HideSecrets().filter(record)
        assert "s3cret" not in record.getMessage()
        assert "/accounts/link/…" in record.getMessage()


def test_every_handler_hides_them() -> None:
    assert all("secrets" in handler["filters"] for handler in settings.LOGGING["handlers"].values())


@pytest.mark.parametrize("key", ["abcdefgh\0ijk", "é" * 32, "A" * 32, "'" * 32, "x" * 5000])
def test_a_session_cookie_of_any_form_is_a_stranger(client: Client, key: str) -> None:
    """A NUL in it reaches no database: PostgreSQL would answer with an error, on every page."""
    client.cookies[settings.SESSION_COOKIE_NAME] = key
    assert client.get(reverse("account_login")).status_code == 200
    assert client.get("/live/news?topics=runs").status_code == 401
