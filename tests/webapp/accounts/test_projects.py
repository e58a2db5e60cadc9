"""Pages of somebody who is in several projects, or in some with little to say."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import OperationalError, connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from tests.webapp.datasets.files import lines
from tests.webapp.members import become
from tests.webapp.stories import Story, launch
from training_core.contract.presets import TINY_COPY
from training_core.contract.yaml_text import spec_to_yaml
from webapp.accounts.models import Membership, Project, Role, User
from webapp.accounts.refusals import PeopleRefused
from webapp.datasets import dispatch
from webapp.datasets import services as uploads
from webapp.datasets.mapping import Mapping
from webapp.datasets.models import Dataset, DatasetImport, DatasetVersion
from webapp.metrics.models import LiveEvent
from webapp.people.archiving import archive_or_refuse
from webapp.runs import services
from webapp.runs.models import Run
from webapp.runs.refusals import ControlRefused, LaunchRefused
from webapp.workers_page.models import Worker

LAUNCH = reverse("runs:launch")
ROWS = lines(*({"prompt": f"{i} + {i}", "answer": 2 * i} for i in range(20)))


@pytest.fixture(autouse=True)
def no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "send_task", lambda *_: True)


@pytest.fixture
def other(ada: User) -> Project:
    """A second project of Ada's, in which she is a researcher too."""
    other = Project.objects.create(slug="other", name="Other")
    become(ada, Role.RESEARCHER, other)
    return other


@pytest.fixture
def secret(db: None) -> Project:
    """A project that Ada is not in."""
    return Project.objects.create(slug="secret", name="Secret")


def version(owner: User, name: str, project: Project | None = None) -> DatasetVersion:
    dataset = Dataset.objects.create(
        name=name, owner=owner, project=project or Project.objects.main()
    )
    return DatasetVersion.objects.create(
        dataset=dataset, number=1, state="ready", record_count=20, held_out_count=5
    )


def in_main(owner: User) -> Run:
    """A run in the main project of somebody who could launch elsewhere too."""
    main = Project.objects.main()
    return services.launch_run(owner=owner, spec=TINY_COPY.spec, project=main)


def yaml_post(project: str) -> dict[str, str]:
    """A launch as a browser sends it from the YAML side."""
    text = spec_to_yaml(TINY_COPY.spec)
    return {"mode": "yaml", "yaml": text, "project": project, "idempotency_key": "k1"}


def test_the_launch_form_offers_the_datasets_of_its_project_alone(
    ada: User, bob: User, other: Project, secret: Project, browser: Client
) -> None:
    version(bob, "main sums")
    version(bob, "other sums", other)
    hidden = version(bob, "secret sums", secret)
    for project, seen in (("main", "main sums"), ("other", "other sums")):
        opened = browser.get(f"{LAUNCH}?project={project}")
        add = {"mode": "form", "action": "add:domains:dataset", "project": project}
        page = browser.post(LAUNCH, add).content.decode() + opened.content.decode()
        assert seen in page
        for name in {"main sums", "other sums", "secret sums"} - {seen}:
            assert name not in page
        assert str(hidden.pk) not in page


def test_a_run_does_not_go_to_another_project_without_a_word(
    ada: User, other: Project, browser: Client
) -> None:
    Membership.objects.filter(user=ada, project=other).update(role=Role.VIEWER)
    answer = browser.post(LAUNCH, yaml_post("other"))
    page = answer.content.decode()
    assert answer.status_code == 422
    assert "may not launch in the project that was chosen; the form says Main now" in page
    assert 'id="field-project"' in page
    assert not Run.objects.exists()
    assert browser.post(LAUNCH, yaml_post("main")).status_code == 302
    assert Run.objects.get().project == Project.objects.main()


def test_a_preset_asks_for_the_project_when_nothing_speaks_for_one(
    ada: User, other: Project, browser: Client
) -> None:
    card = {"preset": "tiny-model", "idempotency_key": "k1"}
    asked = browser.post(reverse("runs:launch_preset"), card)
    assert asked.status_code == 422
    assert "Choose the project that the run belongs to" in asked.content.decode()
    assert browser.post(reverse("runs:launch_preset") + "?project=other", card).status_code == 302
    assert Run.objects.get().project == other
    again = browser.post(reverse("runs:launch_preset"), card | {"idempotency_key": "k2"})
    assert again.status_code == 302  # as last time
    assert Run.objects.filter(project=other).count() == 2


def test_a_copy_says_when_it_goes_to_another_project(
    ada: User, bob: User, other: Project, browser: Client
) -> None:
    become(ada, Role.VIEWER)
    page = browser.get(f"{LAUNCH}?from={launch(bob).number}").content.decode()
    assert '<option value="other" selected>Other</option>' in page


def test_lists_say_the_project_when_there_are_several(
    ada: User, other: Project, browser: Client
) -> None:
    run = in_main(ada)
    dataset = version(ada, "main sums").dataset
    Project.objects.filter(slug="main").update(name="Arithmetic")
    pages = ("/runs/", "/datasets/", f"/runs/{run.number}/", f"/datasets/{dataset.pk}/")
    for address in pages:
        assert "Arithmetic" in browser.get(address).content.decode(), address
    row = f'id="run-{run.number}"'
    narrowed = browser.get("/runs/?project=main").content.decode()
    assert row in narrowed
    assert "in Arithmetic" not in narrowed
    assert row not in browser.get("/runs/?project=other").content.decode()
    assert "main sums" not in browser.get("/datasets/?project=other").content.decode()
    Membership.objects.filter(project=other).delete()
    for address in pages:
        assert "Arithmetic" not in browser.get(address).content.decode(), address


def test_a_project_that_one_may_not_see_is_no_choice(
    ada: User, other: Project, secret: Project, browser: Client
) -> None:
    run = in_main(ada)
    page = browser.get("/runs/?project=secret").content.decode()
    assert f'id="run-{run.number}"' in page  # as if nothing had been chosen
    assert "Secret" not in page
    answer = browser.post(LAUNCH, yaml_post("secret"))
    assert "Secret" not in answer.content.decode()
    assert answer.status_code == 422


def upload(browser: Client, project: str | None):
    posted = {"file": SimpleUploadedFile("a.jsonl", ROWS)}
    return browser.post(
        reverse("datasets:upload"), posted | ({"project": project} if project else {})
    )


@pytest.mark.parametrize("name", ["other", "secret", "nowhere"])
def test_a_file_does_not_go_to_another_project_without_a_word(
    name: str, ada: User, other: Project, secret: Project, browser: Client
) -> None:
    Membership.objects.filter(user=ada, project=other).update(role=Role.REVIEWER)
    refused = upload(browser, name)
    assert refused.status_code == 422
    assert "may not add datasets to the project that was chosen" in refused.content.decode()
    assert "Secret" not in refused.content.decode()
    assert 'name="project"' in refused.content.decode()
    assert not DatasetImport.objects.exists()
    assert upload(browser, None).status_code == 302
    assert DatasetImport.objects.get().project == Project.objects.main()


def test_a_file_goes_where_it_is_sent(ada: User, other: Project, browser: Client) -> None:
    assert upload(browser, "other").status_code == 302
    assert DatasetImport.objects.get().project == other


def test_buttons_follow_the_project_of_the_thing(
    ada: User, bob: User, other: Project, browser: Client
) -> None:
    become(ada, Role.VIEWER)
    dataset = version(bob, "main sums").dataset
    for address in ("/datasets/", f"/datasets/{dataset.pk}/"):
        assert "Use in a run" not in browser.get(address).content.decode()
    become(ada, Role.RESEARCHER)
    for address in ("/datasets/", f"/datasets/{dataset.pk}/"):
        assert "Use in a run" in browser.get(address).content.decode()


def imported(owner: User) -> DatasetImport:
    job = uploads.store_upload(owner, "bobs-secrets.jsonl", [ROWS])
    uploads.start_import(job, "Sums", Mapping("prompt", "answer"), "")
    uploads.run_import(job.pk)
    job.refresh_from_db()
    assert job.state == "done"
    return job


def test_a_curator_looks_at_what_was_imported(ada: User, browser: Client) -> None:
    become(ada, Role.CURATOR)
    page = browser.get(f"/datasets/imports/{imported(ada).pk}/").content.decode()
    assert "Look at the records" in page
    assert "Check and launch" not in page


@pytest.mark.parametrize("role", [*Role, None])
def test_hints_of_an_upload_are_for_who_may_see_it(
    role: Role | None, ada: User, bob: User, browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("webapp.datasets.imports.REPORT_EVERY_S", 0.0)
    become(ada, role)
    start = browser.get("/live/news?topics=datasets").json()["cursor"]
    job = imported(bob)
    told = browser.get(f"/live/news?topics=datasets&since={start}").json()["hints"]
    states = {state for state in ("running", "done") for text in told if f'"{state}"' in text}
    expected = {"running", "done"} if role in {Role.CURATOR, Role.ADMIN} else {"done"}
    assert states == (expected if role else set())
    bobs = Client()
    bobs.force_login(bob)
    heard = bobs.get(f"/live/news?topics=datasets&since={start}").json()["hints"]
    assert (
        len(heard)
        == LiveEvent.objects.filter(data__id=str(job.pk))
        .exclude(topic__endswith=":curators")
        .count()
    )
    assert any('"running"' in text for text in heard)


def test_the_workers_page_names_no_run_of_another_project(
    ada: User, bob: User, secret: Project, browser: Client
) -> None:
    become(bob, Role.RESEARCHER, secret)
    spec = TINY_COPY.spec.model_copy(update={"name": "Hidden work"})
    run = services.launch_run(owner=bob, spec=spec, project=secret)
    Story(run).start()
    waits = services.launch_run(owner=bob, spec=spec, project=secret)
    own = launch(ada)
    now = timezone.now()
    facts = {"boot": "b", "host": "h", "pid": 1, "slots": 1, "started_at": now, "seen_at": now}
    Worker.objects.create(name="train@h", queues=["train"], consuming_at=now, busy_run=run, **facts)
    page = browser.get("/workers/").content.decode()
    assert "Hidden work" not in page
    assert f"/runs/{run.number}/" not in page
    assert f"/runs/{waits.number}/" not in page
    assert "Has a run of a project that you are not in." in page
    assert f"/runs/{own.number}/" in page
    assert "number 2 in the queue" in page  # others are counted, not named


def test_nobody_steers_in_an_archived_project(ada: User, bob: User, browser: Client) -> None:
    become(ada, Role.ADMIN)
    run = launch(bob)
    Project.objects.update(archived_at=timezone.now())
    assert "Main is archived" in browser.get(f"/runs/{run.number}/").content.decode()
    refused = browser.post(f"/runs/{run.number}/control/stop/")
    assert refused.status_code == 403
    assert "Main is archived" in refused.content.decode()


def test_a_launch_does_not_slip_into_a_project_that_is_put_away(
    ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    main = Project.objects.main()
    monkeypatch.setattr(services, "_refuse_bad_spec", lambda *_: archive_or_refuse(main, ada))
    with pytest.raises(LaunchRefused, match="Main has just been archived") as refused:
        services.launch_run(owner=ada, spec=TINY_COPY.spec)
    assert refused.value.errors[0].path == "project"
    assert not Run.objects.exists()


def test_a_paused_run_does_not_go_on_in_a_project_that_is_put_away(ada: User) -> None:
    run = launch(ada)
    Run.objects.update(state="paused")
    archive_or_refuse(run.project, ada)
    with pytest.raises(ControlRefused, match="Main is archived"):
        services.resume_run(run, ada)
    assert Run.objects.get().state == "paused"


def test_an_archive_waits_for_a_launch_that_has_begun(
    transactional_db: None, settings: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "dispatch_run_on_commit", lambda _: None)
    main, eve = Project.objects.main(), User.objects.create_user("eve")

    def archive() -> None:
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute("SET LOCAL lock_timeout = '300ms'")
                archive_or_refuse(main, eve)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool, transaction.atomic():
        services.launch_run(owner=eve, spec=TINY_COPY.spec)
        with pytest.raises(OperationalError, match="lock timeout"):
            pool.submit(archive).result()
    with pytest.raises(PeopleRefused, match="wait or run"):
        archive_or_refuse(main, eve)


@pytest.mark.parametrize("role", [Role.VIEWER, Role.RESEARCHER])
def test_a_page_asks_once_where_one_is_in(
    role: Role, ada: User, bob: User, browser: Client
) -> None:
    run = Story(launch(bob)).start().run
    dataset = version(bob, "main sums").dataset
    become(ada, role)
    pages = ["/runs/", "/datasets/", f"/datasets/{dataset.pk}/", "/workers/"]
    pages += [f"/runs/{run.number}/{tab}" for tab in ("", "phase/", "config/", "checkpoints/")]
    if role is Role.RESEARCHER:
        pages += [LAUNCH, f"{LAUNCH}?from={run.number}", "/datasets/upload/"]
    for address in pages:
        with CaptureQueriesContext(connection) as asked:
            assert browser.get(address).status_code == 200
        found = [
            query["sql"]
            for query in asked
            if query["sql"].startswith('SELECT "accounts_membership"."id"')
            or 'FROM "accounts_project"' in query["sql"].partition("WHERE")[0]
        ]
        assert len(found) == 1, (address, found)


def test_the_site_administration_makes_members(client: Client, bob: User) -> None:
    become(bob, None)
    client.force_login(User.objects.create_superuser("root"))
    main = Project.objects.main()
    address = reverse("admin:accounts_project_change", args=[main.pk])
    page = client.get(address)
    assert page.status_code == 200
    posted = {
        "name": "Main",
        "memberships-TOTAL_FORMS": "1",
        "memberships-INITIAL_FORMS": "0",
        "memberships-0-project": str(main.pk),
        "memberships-0-user": str(bob.pk),
        "memberships-0-role": "reviewer",
    }
    assert client.post(address, posted).status_code == 302
    assert Membership.objects.get(user=bob).role == Role.REVIEWER
