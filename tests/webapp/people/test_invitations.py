"""Invitation links: shown once, used as often as they say, and worthless after that."""

from __future__ import annotations

import re
import threading
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from tests.webapp.members import become
from tests.webapp.people.conftest import actions
from webapp.accounts import invitations
from webapp.accounts.models import Invitation, Membership, Project, Role, User
from webapp.accounts.refusals import PeopleRefused
from webapp.audit.models import AuditEntry

pytestmark = pytest.mark.usefixtures("newcomers_stay_out")

LINKS = "/projects/main/invitations/"
NEW = {"username": "newcomer", "password": "a-long-password"}


def make(admin: Client, role: str = "viewer", uses: str = "1") -> str:
    """The path of a fresh link."""
    page = admin.post(LINKS, {"role": role, "days": "7", "uses": uses}).content.decode()
    found = re.search(r"http://testserver(/invitation/[\w-]+/)", page)
    assert found, page
    return found[1]


def test_a_link_is_shown_once_and_brings_somebody_new_in(admin: Client, main: Project) -> None:
    assert "No invitation yet" in admin.get(LINKS).content.decode()
    path = make(admin, "reviewer")
    token = path.split("/")[2]
    assert token not in admin.get(LINKS).content.decode()
    assert not Invitation.objects.filter(token_hash__contains=token).exists()
    guest = Client()
    opened = guest.get(path).content.decode()
    assert "ada</bdi> invites you as <strong>reviewer</strong>" in " ".join(opened.split())
    assert guest.post(path, NEW).headers["Location"] == "/"
    joined = User.objects.get(username="newcomer")
    assert guest.get("/runs/").status_code == 200
    membership = Membership.objects.get(user=joined, role=Role.REVIEWER)
    assert membership.project == main
    assert actions() == ["invitation.make", "user.make", "member.add", "invitation.use"]
    assert token not in str(list(AuditEntry.objects.values()))
    assert Client().get(path).status_code == 410


def test_somebody_who_has_an_account_joins_with_it(admin: Client, bob: User) -> None:
    path = make(admin)
    client = Client()
    client.force_login(bob)
    assert "Join as bob" in client.get(path).content.decode()
    assert client.post(path).status_code == 302
    assert Membership.objects.get(user=bob).role == "viewer"
    again = client.post(make(admin))
    assert again.status_code == 422
    assert "You are in Main already" in again.content.decode()
    assert Invitation.objects.filter(used=0).count() == 1  # refused, so not used up


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"revoked_at": timezone.now()}, "was revoked"),
        ({"expires_at": timezone.now() - timedelta(seconds=1)}, "has expired"),
        ({"used": 1}, "has been used up"),
    ],
)
def test_a_link_that_is_over_says_why(
    change: dict[str, object], sentence: str, admin: Client
) -> None:
    path = make(admin)
    Invitation.objects.update(**change)
    for answer in (Client().get(path), Client().post(path, NEW)):
        assert answer.status_code == 410
        assert sentence in answer.content.decode()
    assert sentence in admin.get(LINKS).content.decode()
    assert not User.objects.filter(username="newcomer").exists()


def test_a_link_that_never_was(client: Client, db: None) -> None:
    answer = client.get("/invitation/never/")
    assert answer.status_code == 404
    assert "There is no such invitation." in answer.content.decode()


def test_an_archived_project_lets_nobody_in(admin: Client, main: Project) -> None:
    path = make(admin)
    Project.objects.update(archived_at=timezone.now())
    assert "is archived" in Client().post(path, NEW).content.decode()


def test_who_has_just_lost_the_role_makes_no_link(ada: User, bob: User, main: Project) -> None:
    become(ada, Role.RESEARCHER)
    become(bob, Role.ADMIN)
    with pytest.raises(PeopleRefused, match=r"an admin of Main \(admins: bob\)"):
        invitations.make_invitation(main, Role.ADMIN, days=1, uses=1, actor=ada)
    User.objects.filter(pk=bob.pk).update(is_active=False)  # behind the back of the object
    with pytest.raises(PeopleRefused):
        invitations.make_invitation(main, Role.ADMIN, days=1, uses=1, actor=bob)
    assert not Invitation.objects.exists()


def test_an_admin_revokes_a_link(admin: Client) -> None:
    path = make(admin)
    link = Invitation.objects.get()
    assert admin.post(f"{LINKS}{link.pk}/revoke/").status_code == 302
    assert Client().get(path).status_code == 410
    admin.post(f"{LINKS}{link.pk}/revoke/")
    assert actions() == ["invitation.make", "invitation.revoke"]


def test_a_link_of_another_project_is_not_revoked_from_here(admin: Client, bob: User) -> None:
    other = Project.objects.create(slug="other", name="Other")
    become(bob, Role.ADMIN, other)
    link, _ = invitations.make_invitation(other, Role.VIEWER, days=1, uses=1, actor=bob)
    assert admin.post(f"{LINKS}{link.pk}/revoke/").status_code == 404
    link.refresh_from_db()
    assert link.revoked_at is None


@pytest.mark.parametrize(
    "posted",
    [
        {"role": "king", "days": "7", "uses": "1"},
        {"role": "viewer", "days": "8", "uses": "1"},
        {"role": "viewer", "days": "7", "uses": "0"},
        {"role": "viewer", "days": "7", "uses": "101"},
        {"role": "viewer", "days": "7", "uses": "many"},
        {},
    ],
)
def test_a_link_that_cannot_be(posted: dict[str, str], admin: Client) -> None:
    answer = admin.post(LINKS, posted)
    assert answer.status_code == 422
    assert 'aria-invalid="true"' in answer.content.decode()
    assert not Invitation.objects.exists()


@pytest.mark.parametrize(
    ("username", "password", "sentence"),
    [
        ("", "a-long-password", "Choose a user name"),
        ("bob", "a-long-password", "taken"),
        ("BOB", "a-long-password", "taken"),
        ("<b>x</b>", "a-long-password", "Enter a valid username"),
        ("x\0", "a-long-password", "Enter a valid username"),
        ("\u3164", "a-long-password", "nobody sees"),
        ("ad\uffa0min", "a-long-password", "nobody sees"),
        ("newcomer", "", "Choose a password"),
        ("newcomer", "123", "too short"),
        ("newcomer", "password", "too common"),
    ],
)
def test_a_name_or_a_password_that_will_not_do(
    username: str, password: str, sentence: str, admin: Client, bob: User
) -> None:
    path = make(admin)
    answer = Client().post(path, {"username": username, "password": password})
    assert answer.status_code == 422
    assert sentence in answer.content.decode()
    assert Invitation.objects.get().used == 0
    assert Client().post(path, NEW).status_code == 302


def test_guessing_is_slowed_down(client: Client, db: None) -> None:
    answers = [client.post(f"/invitation/guess{n}/").status_code for n in range(25)]
    assert answers[0] == 404
    assert answers[-1] == 429


@pytest.mark.django_db(transaction=True)
def test_the_last_use_lets_one_in() -> None:
    main = Project.objects.main()
    admin = User.objects.create_superuser("eve")
    link, _ = invitations.make_invitation(main, Role.VIEWER, days=1, uses=1, actor=admin)
    start, refused = threading.Barrier(2), []

    def come(name: str) -> None:
        start.wait()
        try:
            invitations.join_as_new(link, name, "a-long-password")
        except PeopleRefused as refusal:
            refused.append(refusal.message)
        finally:
            connection.close()

    threads = [threading.Thread(target=come, args=[name]) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert refused == ["This invitation has been used up."]
    assert User.objects.filter(username__in=["one", "two"]).count() == 1
