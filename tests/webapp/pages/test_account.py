"""Signing in and out in our own look; the link itself is tested with `webapp.accounts`."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from webapp.accounts.models import User
from webapp.accounts.services import create_login_link


@pytest.mark.django_db
def test_the_sign_in_page(client: Client) -> None:
    page = client.get(reverse("account_login")).content.decode()
    assert 'autocomplete="current-password"' in page
    assert "login-link" in page
    assert "rail-nav" not in page  # nothing to navigate to yet


def test_signing_in_with_a_password(client: Client, ada: User) -> None:
    wrong = client.post(reverse("account_login"), {"login": "ada", "password": "no"})
    assert 'role="alert"' in wrong.content.decode()
    right = client.post(reverse("account_login"), {"login": "ada", "password": "a-long-password"})
    assert right.headers["Location"] == "/"


def test_a_link_shows_a_button_and_then_is_spent(client: Client, ada: User) -> None:
    address = create_login_link(ada)
    page = client.get(address).content.decode()
    assert "Sign in</button>" in page
    assert client.post(address).headers["Location"] == "/"
    other = Client()
    spent = other.post(address)
    assert spent.status_code == 410
    assert "manage.py login-link" in spent.content.decode()


def test_signing_out_asks_first(browser: Client) -> None:
    page = browser.get(reverse("account_logout")).content.decode()
    assert "Runs go on without you." in page
    assert browser.post(reverse("account_logout")).status_code == 302
    assert browser.get("/runs/").status_code == 302


@pytest.mark.django_db
def test_nobody_signs_up_alone(client: Client) -> None:
    page = client.get(reverse("account_signup")).content.decode()
    assert "An administrator makes accounts" in page


def test_the_page_of_a_new_password_wears_our_frame(browser: Client) -> None:
    answer = browser.get(reverse("account_change_password"), follow=True)
    assert answer.status_code == 200
    assert "css/account.css" in answer.content.decode()


@pytest.mark.django_db
def test_the_admin_lists_our_tables(client: Client) -> None:
    staff = User.objects.create_superuser("root")
    client.force_login(staff)
    for table in (
        "datasets/dataset",
        "datasets/datasetversion",
        "datasets/datasetimport",
        "rollouts/rolloutgroup",
    ):
        assert client.get(f"/admin/{table}/").status_code == 200
        assert client.get(f"/admin/{table}/?q=x").status_code == 200
