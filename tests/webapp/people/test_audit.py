"""The audit log: what goes in with a deed, stays as it is, and is found again."""

from __future__ import annotations

import csv
import io
from ipaddress import ip_address

import pytest
from django.contrib.auth import authenticate
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import InternalError, ProgrammingError, connection, transaction
from django.test import Client, RequestFactory

from tests.webapp.datasets.files import lines
from tests.webapp.hostile import NAMES, RAW_MARKUP
from tests.webapp.members import become
from tests.webapp.people.conftest import actions
from tests.webapp.stories import Story, launch
from training_core.contract.presets import TINY_COPY
from webapp.accounts.models import Membership, Project, Role, User
from webapp.accounts.services import create_login_link, ensure_owner
from webapp.audit.actions import ACTIONS
from webapp.audit.models import AuditEntry
from webapp.audit.record import record
from webapp.audit.sign_in import failed
from webapp.audit.source import _address_of
from webapp.datasets import dispatch
from webapp.datasets import services as uploads
from webapp.datasets.mapping import Mapping
from webapp.runs import services
from webapp.runs.models import Run
from webapp.runs.refusals import ControlRefused, LaunchRefused

LOG = "/projects/main/audit/"


def note(actor: User | None, label: str, project: Project | None = None, **more: object) -> None:
    record("run.launch", actor=actor, kind="run", key=1, label=label, project=project, **more)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "statement",
    ["UPDATE audit_auditentry SET actor = 'bob'", "DELETE FROM audit_auditentry"],
)
def test_an_entry_is_never_changed(statement: str, ada: User) -> None:
    note(ada, "#1 first")
    with (
        pytest.raises((InternalError, ProgrammingError), match="append-only"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement)
    assert AuditEntry.objects.filter(label="#1 first").get().actor == "ada"


def test_what_a_person_does_with_a_run(ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    run = launch(ada)
    story = Story(run).start()
    services.evaluate_now(run, ada)
    services.evaluate_now(run, ada)  # asked for already
    services.pause_run(run, ada)
    assert story.claim is not None
    Run.objects.filter(pk=run.pk).update(state="paused", lease_owner="", lease_until=None)
    services.resume_run(Run.objects.get(pk=run.pk), ada)
    services.stop_run(Run.objects.get(pk=run.pk), ada)
    services.archive_run(run, ada)
    services.archive_run(run, ada)
    services.delete_run(Run.objects.get(pk=run.pk), ada)
    done = ["launch", "evaluate_now", "pause", "resume", "stop", "archive", "unarchive", "delete"]
    assert actions() == [f"run.{deed}" for deed in done]
    newest = AuditEntry.objects.first()
    assert newest is not None
    assert newest.label == f"#{run.number} {run.name}"
    assert newest.before["state"] == "stopped"


def test_a_deed_that_failed_leaves_no_entry(ada: User, bob: User) -> None:
    become(bob, Role.VIEWER)
    with pytest.raises(LaunchRefused):
        services.launch_run(owner=bob, spec=TINY_COPY.spec)
    run = launch(ada)
    with pytest.raises(ControlRefused):
        services.delete_run(run, ada)
    with transaction.atomic():
        services.stop_run(run, ada)
        transaction.set_rollback(True)
    assert actions() == ["run.launch"]


def test_an_import_says_who_started_it(
    ada: User, bob: User, browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "send_task", lambda *_: True)
    become(ada, Role.CURATOR)
    rows = lines(*({"prompt": f"{i} + {i}", "answer": 2 * i} for i in range(20)))
    job = uploads.store_upload(bob, "a.jsonl", [rows])
    posted = {"name": "Sums", "prompt": "prompt", "answer": "answer", "held_out_percent": "20"}
    assert browser.post(f"/datasets/imports/{job.pk}/", posted).status_code == 302
    uploads.run_import(job.pk)
    found = AuditEntry.objects.filter(action__startswith="dataset.").order_by("pk")
    assert [(entry.action, entry.actor) for entry in found] == [
        ("dataset.upload", "bob"),
        ("dataset.import", "ada"),
        ("dataset.version", "bob"),
    ]
    assert found[2].after["records"] == 20
    assert not uploads.start_import(job, "Again", Mapping("prompt", "answer"), "", ada)
    assert found.count() == 3


def test_signing_in_failing_and_out(client: Client, ada: User) -> None:
    client.post("/accounts/login/", {"login": "ada", "password": "not-this-one"})
    client.post("/accounts/login/", {"login": "no-such-person", "password": "x"})
    client.post("/accounts/login/", {"login": "ada", "password": "a-long-password"})
    client.post("/accounts/logout/")
    found = AuditEntry.objects.order_by("pk").values_list("action", "actor", "label")
    assert list(found) == [
        ("account.sign_in_failed", "", "ada"),
        ("account.sign_in", "ada", "ada"),
        ("account.sign_out", "ada", "ada"),
    ]
    assert "not-this-one" not in str(list(AuditEntry.objects.values()))


def test_a_failed_sign_in_is_known_by_any_spelling_of_the_name(client: Client, ada: User) -> None:
    User.objects.filter(pk=ada.pk).update(email="ada@example.org")
    for name in ("ADA", "Ada@example.org"):
        assert authenticate(username=name, password="not-this-one") is None
    failed({"username": "a\0"})  # what no form lets through
    assert AuditEntry.objects.filter(action="account.sign_in_failed", label="ada").count() == 2


def test_a_changed_password_is_noted_without_it(client: Client, ada: User) -> None:
    client.post("/accounts/login/", {"login": "ada", "password": "a-long-password"})
    new = "another-long-password"
    form = {"oldpassword": "a-long-password", "password1": new, "password2": new}
    assert client.post("/accounts/password/change/", form).status_code == 302
    entry = AuditEntry.objects.get(action="account.password")
    assert (entry.actor, entry.label, entry.after) == ("ada", "ada", {})


def test_what_is_changed_under_admin_is_noted(root: Client, ada: User, main: Project) -> None:
    address = f"/admin/accounts/project/{main.pk}/change/"
    posted = {
        "name": "Renamed",
        "memberships-TOTAL_FORMS": "1",
        "memberships-INITIAL_FORMS": "0",
        "memberships-0-project": str(main.pk),
        "memberships-0-user": str(User.objects.create_user("dan").pk),
        "memberships-0-role": "admin",
    }
    Membership.objects.all().delete()
    assert root.post(address, posted).status_code == 302
    entry = AuditEntry.objects.get(action="admin.change")
    assert (entry.actor, entry.kind, entry.project_key) == ("root", "project", main.pk)
    assert "Name" in entry.after["what"]
    assert "dan is admin of Renamed" in entry.after["what"]
    user = f"/admin/accounts/user/{ada.pk}"
    new = {"password1": "a-new-long-password", "password2": "a-new-long-password"}
    assert root.post(f"{user}/password/", {**new, "usable_password": "true"}).status_code == 302
    assert AuditEntry.objects.filter(action="admin.change", kind="user", label="ada").exists()
    assert root.post(f"{user}/delete/", {"post": "yes"}).status_code == 403


def test_a_link_of_a_command_is_noted(ada: User) -> None:
    create_login_link(ada)
    entry = AuditEntry.objects.get(action="user.link")
    assert (entry.actor, entry.label, entry.address) == ("", "ada", None)


def test_the_first_owner_is_noted_once(db: None) -> None:
    Membership.objects.all().delete()
    for _ in range(2):
        ensure_owner()
    assert actions() == ["user.make", "member.add"]


def test_a_file_that_is_none_is_noted_as_such(browser: Client, ada: User) -> None:
    posted = {"file": SimpleUploadedFile("a.csv", b"\xff\xfe\x00\x01")}
    assert browser.post("/datasets/upload/", posted).status_code == 422
    assert actions() == ["dataset.upload", "dataset.discard"]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("peer", "kept"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("fe80::1%eth0", "fe80::1"),
        ("::ffff:10.0.0.1", "::ffff:10.0.0.1"),
    ],
)
def test_where_it_came_from(peer: str, kept: str, ada: User) -> None:
    client = Client(REMOTE_ADDR=peer)
    client.post("/accounts/login/", {"login": "ada", "password": "not-this-one"})
    entry = AuditEntry.objects.get(action="account.sign_in_failed")
    assert ip_address(entry.address) == ip_address(kept)


@pytest.mark.parametrize("peer", ["", "unix:", "%"])
def test_a_socket_file_is_no_address(peer: str) -> None:
    assert _address_of(RequestFactory(REMOTE_ADDR=peer).get("/")) is None


def test_a_project_shows_its_own_entries_alone(admin: Client, ada: User, main: Project) -> None:
    other = Project.objects.create(slug="other", name="Other")
    note(ada, "#1 ours", main)
    note(ada, "#2 theirs", other)
    note(ada, "#3 nobody's")
    for address in (LOG, "/projects/main/audit.csv"):
        page = admin.get(address).content.decode()
        assert "#1 ours" in page
        assert "theirs" not in page
        assert "#3" not in page
    assert admin.get("/projects/other/audit/").status_code == 404
    assert admin.get("/audit/").status_code == 403


def test_a_superuser_sees_everything(root: Client, ada: User, main: Project) -> None:
    note(ada, "#1 ours", main)
    page = root.get("/audit/").content.decode()
    assert "#1 ours" in page
    assert "signed in" in page


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", {"one", "two"}),
        ("actor=AD", {"one"}),
        ("q=two", {"two"}),
        ("action=run.launch", {"one", "two"}),
        ("action=run.stop", set()),
        ("action=nonsense", {"one", "two"}),
        ("since=2999-01-01", set()),
        ("until=2000-01-01", set()),
        ("since=2000-01-01&until=2999-01-01", {"one", "two"}),
        ("since=never&until=9999-99-99&before=x", {"one", "two"}),
        ("until=9999-12-31", {"one", "two"}),
        ("q=%00", {"one", "two"}),
    ],
)
def test_filters(
    query: str, found: set[str], admin: Client, ada: User, bob: User, main: Project
) -> None:
    note(ada, "#1 one", main)
    note(bob, "#2 two", main)
    page = admin.get(f"{LOG}?{query}").content.decode()
    assert {word for word in ("one", "two") if f" {word}</bdi>" in page} == found
    if not found:
        assert "No entry fits" in page


def test_pages(admin: Client, ada: User, main: Project) -> None:
    for n in range(60):
        note(ada, f"#{n} run", main)
    first = admin.get(LOG)
    shown = first.context["page"]
    assert len(shown.entries) == 50
    second = admin.get(f"{LOG}{shown.older}").context["page"]
    assert second.older == ""
    labels = [it.entry.label for page in (shown, second) for it in page.entries]
    assert labels == [f"#{n} run" for n in range(59, -1, -1)]


def test_the_file_is_text_to_a_spreadsheet(admin: Client, ada: User, main: Project) -> None:
    note(ada, "=1+1", main, after={"role": "+cmd"})
    rows = list(csv.DictReader(io.StringIO(admin.get(f"{LOG[:-1]}.csv").content.decode())))
    assert len(rows) == 1
    assert not [cell for cell in rows[0].values() if cell.startswith(("=", "+", "-", "@"))]


@pytest.mark.parametrize("name", [*NAMES, "nul\0", "x" * 300])
def test_hostile_labels(name: str, admin: Client, ada: User, main: Project) -> None:
    note(ada, name, main, before={name[:50]: name}, after={"parts": [name, {"in": name}]})
    page = admin.get(LOG).content.decode()
    assert not [markup for markup in RAW_MARKUP if markup in page]


@pytest.mark.django_db
def test_an_unknown_action_is_refused() -> None:
    with pytest.raises(KeyError):
        record("run.explode", actor=None, kind="run", key=1, label="x")
    assert all(words and words[0].islower() for words in ACTIONS.values())
