"""One-time links sign in once, expire, and cannot be used up by a preview."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from webapp.accounts.models import LoginLink, User
from webapp.accounts.services import (
    create_login_link,
    ensure_owner,
    is_open_login_link,
    redeem_login_link,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice() -> User:
    return User.objects.create_user("alice")


def token_of(path: str) -> str:
    return path.rstrip("/").rsplit("/", 1)[-1]


def test_looking_at_a_link_does_not_spend_it(client: Client, alice: User) -> None:
    link = create_login_link(alice)
    for _ in range(2):
        assert client.get(link).status_code == 200
    assert client.post(link).status_code == 302
    assert client.session["_auth_user_id"] == str(alice.pk)


def test_a_link_works_once(client: Client, alice: User) -> None:
    link = create_login_link(alice)
    assert client.post(link).status_code == 302
    again = Client().post(link)
    assert again.status_code == 410
    assert b"login-link" in again.content
    seen = Client().get(link)
    assert (seen.status_code, b"spent" in seen.content) == (410, True)
    assert b"signed in here already" in client.get(link).content


@pytest.mark.django_db(transaction=True)
def test_two_clicks_at_once_sign_in_once() -> None:
    token = token_of(create_login_link(User.objects.create_user("alice")))

    def click() -> User | None:
        try:
            return redeem_login_link(token)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            assert redeem_login_link(token) is not None
            second = pool.submit(click)
            while not is_somebody_waiting() and not second.done():
                time.sleep(0.01)
        assert second.result() is None


def is_somebody_waiting() -> bool:
    """Whether another connection to this database waits for a row."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_clear_snapshot()")  # it is kept for a whole transaction
        cursor.execute(
            "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() "
            "AND wait_event_type = 'Lock'"
        )
        return cursor.fetchone() is not None


def test_an_old_link_is_refused(alice: User) -> None:
    token = token_of(create_login_link(alice))
    LoginLink.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert not is_open_login_link(token)
    assert redeem_login_link(token) is None


def test_a_deactivated_person_stays_out(alice: User) -> None:
    token = token_of(create_login_link(alice))
    assert is_open_login_link(token)
    User.objects.update(is_active=False)
    assert not is_open_login_link(token)
    assert redeem_login_link(token) is None


def test_the_token_itself_is_not_stored(alice: User) -> None:
    token = token_of(create_login_link(alice))
    assert LoginLink.objects.get().token_hash != token
    assert not LoginLink.objects.filter(token_hash__contains=token).exists()


def test_an_unknown_token_is_refused(client: Client) -> None:
    link = reverse("accounts:login_link", args=["nonsense"])
    assert client.post(link).status_code == client.get(link).status_code == 410


def test_the_first_owner_is_made_once_and_has_no_password() -> None:
    owner = ensure_owner()
    assert ensure_owner() == owner
    assert owner.is_superuser
    assert not owner.has_usable_password()


def test_pages_need_a_sign_in(client: Client) -> None:
    answer = client.get(reverse("runs:index"))
    assert answer.status_code == 302
    assert reverse("account_login") in answer.url  # type: ignore[attr-defined]


def test_nobody_signs_up_alone(client: Client) -> None:
    answer = client.post(
        reverse("account_signup"),
        {"username": "mallory", "password1": "a long one 123", "password2": "a long one 123"},
    )
    assert answer.status_code in {200, 302, 403}
    assert not User.objects.filter(username="mallory").exists()
