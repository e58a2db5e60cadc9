"""Members of a project: who changes them, who is told why not, and who cannot be the last to go."""

from __future__ import annotations

import re
import threading

import pytest
from django.db import connection
from django.test import Client

from tests.webapp.hostile import NAMES, RAW_MARKUP
from tests.webapp.members import become
from tests.webapp.people.conftest import actions
from tests.webapp.stories import Story, launch
from webapp.accounts import invitations, members
from webapp.accounts.models import Invitation, Membership, Project, Role, User
from webapp.accounts.refusals import PeopleRefused
from webapp.accounts.roles import ROLES_WITH, Right
from webapp.audit.models import AuditEntry
from webapp.people.words import ROLE_WORDS
from webapp.runs import services
from webapp.runs.models import Run

PEOPLE = "/projects/main/people/"


def role_of(user: User) -> str | None:
    found = Membership.objects.filter(user=user, project__slug="main").first()
    return found.role if found else None


def test_an_admin_adds_changes_and_removes(admin: Client, bob: User) -> None:
    become(bob, None)
    assert admin.post(PEOPLE, {"username": "bob", "role": "viewer"}).status_code == 302
    assert role_of(bob) == "viewer"
    admin.post(f"{PEOPLE}{bob.pk}/role/", {"role": "curator"})
    assert role_of(bob) == "curator"
    asked = admin.get(f"{PEOPLE}{bob.pk}/remove/").content.decode()
    assert "Remove <bdi>bob</bdi> from <bdi>Main</bdi>?" in asked
    admin.post(f"{PEOPLE}{bob.pk}/remove/")
    assert role_of(bob) is None
    assert actions() == ["member.add", "member.role", "member.remove"]
    entry = AuditEntry.objects.get(action="member.role")
    assert (entry.actor, entry.label) == ("ada", "bob")
    assert (entry.before, entry.after) == ({"role": "viewer"}, {"role": "curator"})
    assert entry.address == "127.0.0.1"


@pytest.mark.parametrize(
    ("posted", "sentence"),
    [
        ({"username": "nobody", "role": "viewer"}, "Nobody has that user name"),
        ({"username": "\0", "role": "viewer"}, "Nobody has that user name"),
        ({"username": "bob", "role": "king"}, "Choose a role"),
        ({"username": "bob", "role": "viewer"}, "bob is researcher of Main already"),
    ],
)
def test_what_cannot_be_is_said_at_its_field(
    posted: dict[str, str], sentence: str, admin: Client, bob: User
) -> None:
    answer = admin.post(PEOPLE, posted)
    assert answer.status_code == 422
    assert sentence in answer.content.decode()
    assert role_of(bob) == "researcher"
    assert actions() == []


def test_a_viewer_reads_who_is_in_and_who_manages(
    browser: Client, ada: User, bob: User, main: Project
) -> None:
    become(ada, Role.VIEWER)
    become(bob, Role.ADMIN)
    page = browser.get(PEOPLE).content.decode()
    assert "Members are managed by an admin of Main (admins: bob)." in page
    assert "Change</button>" not in page
    for address in (f"{PEOPLE}{bob.pk}/remove/", "/projects/main/audit/", "/projects/main/"):
        refused = browser.get(address)
        assert refused.status_code == 403
        assert "admins: bob" in refused.content.decode()
    become(ada, None)
    assert browser.get(PEOPLE).status_code == 404


@pytest.mark.parametrize("deed", ["role", "remove"])
def test_the_last_admin_stays(deed: str, admin: Client, ada: User, bob: User) -> None:
    answer = admin.post(f"{PEOPLE}{ada.pk}/{deed}/", {"role": "viewer"})
    assert answer.status_code == 422
    assert "ada is the only admin of Main" in answer.content.decode()
    become(bob, Role.ADMIN)
    User.objects.filter(pk=bob.pk).update(is_active=False)
    assert admin.post(f"{PEOPLE}{ada.pk}/{deed}/", {"role": "viewer"}).status_code == 422
    User.objects.filter(pk=bob.pk).update(is_active=True)
    assert admin.post(f"{PEOPLE}{ada.pk}/{deed}/", {"role": "viewer"}).status_code == 302
    assert role_of(ada) != "admin"


@pytest.mark.django_db(transaction=True)
def test_two_last_admins_do_not_leave_at_once() -> None:
    main = Project.objects.main()
    for name in ("eve", "dan"):
        become(User.objects.create_user(name), Role.ADMIN)
    both = list(Membership.objects.filter(project=main, role=Role.ADMIN))
    start, refused = threading.Barrier(2), []

    def leave(membership: Membership) -> None:
        start.wait()
        try:
            members.remove_member(membership, membership.user)
        except PeopleRefused as refusal:
            refused.append(refusal.message)
        finally:
            connection.close()

    threads = [threading.Thread(target=leave, args=[each]) for each in both]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert len(refused) == 1
    assert Membership.objects.filter(project=main, role=Role.ADMIN).count() == 1


def test_who_removes_themselves_lands_on_a_page(admin: Client, ada: User, bob: User) -> None:
    become(bob, Role.ADMIN)
    asked = admin.get(f"{PEOPLE}{ada.pk}/remove/").content.decode()
    assert "That is you" in asked
    answer = admin.post(f"{PEOPLE}{ada.pk}/remove/", follow=True)
    assert answer.status_code == 200
    assert "ada is no longer in Main" in answer.content.decode()


def test_a_project_is_left_from_a_page_that_only_takes_forms(
    admin: Client, ada: User, main: Project
) -> None:
    become(ada, Role.VIEWER, Project.objects.create(slug="other", name="Other"))
    refused = admin.post(f"{PEOPLE}{ada.pk}/role/", {"role": "viewer"}).content.decode()
    assert '<input type="hidden" name="next" value="">' in refused
    assert f'name="next" value="{PEOPLE}"' in admin.get(PEOPLE).content.decode()


def test_people_and_runs_of_a_project_are_counted(
    browser: Client, ada: User, bob: User, main: Project
) -> None:
    for _ in range(3):
        launch(bob)
    rows = browser.get("/projects/").context["rows"]
    assert [(row.project, row.role, row.people, row.runs) for row in rows] == [
        (main, "researcher", 2, 3)
    ]


@pytest.mark.parametrize("deed", ["role", "remove", "close"])
def test_links_of_an_admin_who_leaves_are_revoked(
    deed: str, admin: Client, root: Client, bob: User, main: Project
) -> None:
    become(bob, Role.ADMIN)
    _, path = invitations.make_invitation(main, Role.ADMIN, days=7, uses=5, actor=bob)
    if deed == "close":
        root.post(f"/users/{bob.pk}/switch/", {"to": "closed"})
    else:
        admin.post(f"{PEOPLE}{bob.pk}/{deed}/", {"role": "viewer"})
    assert Invitation.objects.get().revoked_at is not None
    assert Client().post(path, {"username": "x", "password": "y"}).status_code == 410
    assert "invitation.revoke" in actions()


def test_a_project_is_made_named_and_put_away(root: Client, browser: Client, ada: User) -> None:
    assert browser.post("/projects/", {"name": "Mine"}).status_code == 403
    made = root.post("/projects/", {"name": "Big  Maths"})
    assert made.headers["Location"] == "/projects/big-maths/people/"
    assert (
        "There is a project of that name"
        in root.post("/projects/", {"name": "big maths"}).content.decode()
    )
    assert root.post("/projects/big-maths/", {"name": "Small maths"}).status_code == 302
    for _ in range(2):  # the second click finds it done
        assert root.post("/projects/big-maths/archive/", {"to": "archive"}).status_code == 302
    project = Project.objects.get(slug="big-maths")
    assert (project.name, project.archived_at is None) == ("Small maths", False)
    assert (
        "It is read, and nothing new is made in it"
        in root.get("/projects/big-maths/").content.decode()
    )
    assert root.post("/projects/big-maths/archive/", {}).status_code == 422
    root.post("/projects/big-maths/archive/", {"to": "use"})
    root.post("/projects/big-maths/", {"name": "Small maths"})
    expected = ["project.make", "member.add", "project.rename", "project.archive"]
    assert actions() == [*expected, "project.unarchive"]


def test_a_project_with_a_run_under_way_is_not_put_away(admin: Client, ada: User) -> None:
    Story(launch(ada)).start()
    waits = launch(ada)
    answer = admin.post("/projects/main/archive/", {"to": "archive"})
    assert answer.status_code == 422
    assert f"Runs of Main wait or run: #{waits.number - 1}, #{waits.number}." in (
        answer.content.decode()
    )
    services.stop_run(waits, ada)
    Run.objects.exclude(pk=waits.pk).update(state="paused", lease_owner="")
    assert admin.post("/projects/main/archive/", {"to": "archive"}).status_code == 302
    assert "Nobody has launched one" not in admin.get("/runs/").content.decode()
    refused = admin.get("/runs/new/")
    assert refused.status_code == 403
    assert "in no project that is open" in refused.content.decode()


def test_the_switcher_narrows_the_lists_and_is_remembered(
    browser: Client, ada: User, bob: User
) -> None:
    other = Project.objects.create(slug="other", name="Other")
    assert "switcher" not in browser.get("/runs/").content.decode()
    become(ada, Role.VIEWER, other)
    run = launch(bob)
    assert run.name in browser.get("/runs/").content.decode()
    answer = browser.post("/projects/switch/", {"project": "other", "next": "/datasets/"})
    assert answer.headers["Location"] == "/datasets/"
    page = browser.get("/runs/").content.decode()
    assert run.name not in page
    assert "Nobody has launched one in Other" in page
    assert run.name in browser.get("/runs/?project=main").content.decode()
    browser.post("/projects/switch/", {"project": ""})
    assert run.name in browser.get("/runs/").content.decode()
    hidden = Project.objects.create(slug="hidden", name="Hidden")
    assert browser.post("/projects/switch/", {"project": hidden.slug}).status_code == 404


@pytest.mark.parametrize("slug", ["\0", "no such", "x" * 300, "../main"])
def test_nonsense_is_no_project(slug: str, browser: Client) -> None:
    assert browser.post("/projects/switch/", {"project": slug}).status_code == 404


def test_numbers_beyond_every_table(admin: Client, root: Client) -> None:
    much = 10**25
    for address in (f"{PEOPLE}{much}/role/", f"{PEOPLE}{much}/remove/"):
        assert admin.post(address, {"role": "viewer"}).status_code == 404
    assert admin.post(f"/projects/main/invitations/{much}/revoke/").status_code == 404
    assert root.post(f"/users/{much}/switch/", {"to": "open"}).status_code == 404


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example", "javascript:x"])
def test_the_switcher_sends_nobody_away(target: str, browser: Client) -> None:
    answer = browser.post("/projects/switch/", {"project": "", "next": target})
    assert answer.headers["Location"] == "/runs/"


@pytest.mark.parametrize(
    "name",
    [
        *("\u202eevil", "zero\u200bwidth", "\x7f", "\u2066", "  ", "\u0301"),
        *("\u3164", "Ma\u00adin", "\u115f", "x\U000e0041"),
    ],
)
def test_a_name_that_nobody_can_read_is_refused(name: str, root: Client) -> None:
    answer = root.post("/projects/", {"name": name})
    assert answer.status_code == 422
    assert re.search("nobody sees|Give the project a name", answer.content.decode())
    assert Project.objects.count() == 1


@pytest.mark.parametrize("name", ["👩‍👩‍👧", "مشروع", "数学", "á"])
def test_a_name_in_any_script_is_taken(name: str, root: Client) -> None:
    assert root.post("/projects/", {"name": name}).status_code == 302
    assert Project.objects.filter(name=name).exists()


def test_a_project_called_like_an_address_has_its_pages(root: Client) -> None:
    made = root.post("/projects/", {"name": "Switch"})
    assert made.headers["Location"] == "/projects/switch-2/people/"
    assert root.get("/projects/switch-2/").status_code == 200


@pytest.mark.parametrize("role", Role)
def test_the_words_for_a_role_say_whether_it_comments(role: Role) -> None:
    assert ("comment" in ROLE_WORDS[role]) == (role in ROLES_WITH[Right.COMMENT])
    assert ("aunches" in ROLE_WORDS[role]) == (role is Role.RESEARCHER)
    assert set(ROLE_WORDS) == set(Role)


@pytest.mark.parametrize("name", [*NAMES, "", "nul\0", "line\nbreak", "x" * 81])
def test_hostile_names_of_projects(name: str, root: Client) -> None:
    answer = root.post("/projects/", {"name": name})
    assert answer.status_code in {302, 422}
    for address in ("/projects/", "/runs/", "/users/", "/audit/", "/account/"):
        page = root.get(address).content.decode()
        assert not [markup for markup in RAW_MARKUP if markup in page]


def test_ones_account_says_where_one_is_in(browser: Client, ada: User) -> None:
    page = browser.get("/account/").content.decode()
    assert "Launches runs and steers their own" in page
    assert "Change the password" in page
    become(ada, None)
    assert "None yet." in browser.get("/account/").content.decode()
    assert browser.get("/people/").headers["Location"] == "/projects/"
    assert "You are in no project yet" in browser.get("/projects/").content.decode()
