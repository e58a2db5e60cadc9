"""Accounts of the installation: made, closed and let in by superusers alone."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from tests.webapp.members import become
from tests.webapp.people.conftest import actions
from webapp.accounts.models import Role, User

pytestmark = pytest.mark.usefixtures("newcomers_stay_out")


def test_a_superuser_makes_an_account_and_a_link(root: Client) -> None:
    assert root.post("/users/", {"username": "newcomer", "password": ""}).status_code == 302
    newcomer = User.objects.get(username="newcomer")
    assert not newcomer.has_usable_password()
    page = root.post(f"/users/{newcomer.pk}/link/").content.decode()
    link = re.search(r"http://testserver(/accounts/link/[\w-]+/)", page)
    assert link
    assert link[1] not in root.get("/users/").content.decode()
    guest = Client()
    assert guest.post(link[1]).status_code == 302
    assert "You are in no project yet" in guest.get("/runs/").content.decode()
    assert actions() == ["user.make", "user.link"]


@pytest.mark.parametrize(
    ("username", "password", "sentence"),
    [("", "", "cannot be blank"), ("root", "", "taken"), ("new", "123", "too short")],
)
def test_an_account_that_cannot_be(
    username: str, password: str, sentence: str, root: Client
) -> None:
    answer = root.post("/users/", {"username": username, "password": password})
    assert answer.status_code == 422
    assert sentence in answer.content.decode()
    assert User.objects.count() == 1


def test_a_closed_account_is_out_at_once(root: Client, ada: User, browser: Client) -> None:
    become(ada, Role.RESEARCHER)
    assert browser.get("/runs/").status_code == 200
    root.post(f"/users/{ada.pk}/switch/")
    assert browser.get("/runs/").status_code == 302
    assert root.post(f"/users/{ada.pk}/link/").status_code == 404
    root.post(f"/users/{ada.pk}/switch/")
    assert actions() == ["user.deactivate", "user.activate"]


def test_nobody_closes_themselves_or_the_last_admin(root: Client, ada: User) -> None:
    own = root.post(f"/users/{User.objects.get(username='root').pk}/switch/")
    assert own.status_code == 422
    become(ada, Role.ADMIN)
    refused = root.post(f"/users/{ada.pk}/switch/")
    assert "ada is the only admin of Main" in refused.content.decode()
    ada.refresh_from_db()
    assert ada.is_active


def test_an_admin_of_a_project_looks_after_no_accounts(
    ada: User, bob: User, browser: Client
) -> None:
    become(ada, Role.ADMIN)
    for answer in (
        browser.get("/users/"),
        browser.post("/users/", {"username": "x"}),
        browser.post(f"/users/{bob.pk}/switch/"),
        browser.post(f"/users/{bob.pk}/link/"),
    ):
        assert answer.status_code == 403
        assert "Only superusers of this installation do this" in answer.content.decode()
