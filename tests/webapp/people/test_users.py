"""Accounts of the installation: made, closed and let in by superusers alone."""

from __future__ import annotations

import re
import threading

import pytest
from django.db import connection
from django.test import Client

from tests.webapp.members import become
from tests.webapp.people.conftest import actions
from webapp.accounts.invitations import make_invitation
from webapp.accounts.members import switch_user
from webapp.accounts.models import Project, Role, User
from webapp.accounts.refusals import PeopleRefused

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
    [("", "", "Choose a user name"), ("root", "", "taken"), ("new", "123", "too short")],
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
    for _ in range(2):  # the second click finds it done
        root.post(f"/users/{ada.pk}/switch/", {"to": "closed"})
    assert browser.get("/runs/").status_code == 302
    assert root.post(f"/users/{ada.pk}/link/").status_code == 404
    assert root.post(f"/users/{ada.pk}/switch/", {}).status_code == 422
    root.post(f"/users/{ada.pk}/switch/", {"to": "open"})
    assert actions() == ["user.deactivate", "user.activate"]


def test_nobody_closes_themselves_or_the_last_admin(root: Client, ada: User) -> None:
    me = User.objects.get(username="root")
    own = root.post(f"/users/{me.pk}/switch/", {"to": "closed"})
    assert own.status_code == 422
    become(ada, Role.ADMIN)
    refused = root.post(f"/users/{ada.pk}/switch/", {"to": "closed"})
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


def test_links_of_a_superuser_are_revoked_with_the_account(root: Client, main: Project) -> None:
    other = User.objects.create_superuser("other")
    link, _ = make_invitation(main, Role.ADMIN, days=7, uses=5, actor=other)
    root.post(f"/users/{other.pk}/switch/", {"to": "closed"})
    link.refresh_from_db()
    assert link.revoked_at is not None


def test_an_account_that_opens_again_asks_for_its_password(
    root: Client, ada: User, browser: Client
) -> None:
    assert browser.get("/runs/").status_code == 200
    for state in ("closed", "open"):
        root.post(f"/users/{ada.pk}/switch/", {"to": state})
    ada.refresh_from_db()
    assert ada.is_active
    assert browser.get("/runs/").status_code == 302
    assert root.get("/users/").status_code == 200


@pytest.mark.django_db(transaction=True)
def test_two_superusers_do_not_close_each_other() -> None:
    one, two = (User.objects.create_superuser(name) for name in ("one", "two"))
    start, refused = threading.Barrier(2), []

    def close(user: User, actor: User) -> None:
        start.wait()
        try:
            switch_user(user, actor, is_active=False)
        except PeopleRefused as refusal:
            refused.append(refusal.message)
        finally:
            connection.close()

    threads = [threading.Thread(target=close, args=pair) for pair in ((one, two), (two, one))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert refused == ["Your own account has just been closed."]
    assert User.objects.filter(is_superuser=True, is_active=True).count() == 1


def test_accounts_are_searched(root: Client, ada: User, bob: User) -> None:
    page = root.get("/users/?q=AD").content.decode()
    assert "<bdi>ada</bdi>" in page
    assert "<bdi>bob</bdi>" not in page
    assert "No account is called that" in root.get("/users/?q=%00nobody").content.decode()
