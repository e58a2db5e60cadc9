"""The models page, the export's page and the download, as a browser gets them."""

from __future__ import annotations

import asyncio
import io
import shutil
import tarfile

import pytest
from django.http import StreamingHttpResponse
from django.test import Client
from django.utils import timezone

from tests.webapp.members import become
from tests.webapp.registry.exports import CONTENT, make_export, make_ready
from tests.webapp.stories import Story, launch
from training_core.contract.yaml_text import spec_to_yaml
from webapp.accounts.models import Project, Role, User
from webapp.audit.models import AuditEntry
from webapp.registry.models import ModelExport
from webapp.runs.models import Checkpoint, Run

pytestmark = pytest.mark.django_db


def page(browser: Client, address: str, status: int = 200) -> str:
    answer = browser.get(address)
    assert answer.status_code == status
    return answer.content.decode()


@pytest.fixture
def export(checkpoint: Checkpoint, ada: User) -> ModelExport:
    return make_ready(checkpoint, ada)


def test_an_empty_page_says_what_to_do_next(browser: Client) -> None:
    text = page(browser, "/models/")
    for words in (
        "Nothing exported yet",
        "No checkpoint yet",
        "SmolLM2-135M-Instruct",
        "Tiny model",
    ):
        assert words in text
    assert "to be prepared" in text


def test_a_viewer_is_offered_nothing_that_is_refused(
    browser: Client, ada: User, export: ModelExport
) -> None:
    address = f"/models/exports/{export.pk}/"
    assert "/models/checkpoints/" in page(browser, "/models/")
    assert f"{address}delete/" in page(browser, address)
    become(ada, Role.VIEWER)
    text = page(browser, "/models/") + page(browser, address)
    assert "/models/checkpoints/" not in text
    assert "/runs/new/" not in text
    assert f"{address}delete/" not in text
    assert f"{address}use/" not in text
    assert f"{address}download.tar" in text
    checkpoints = page(browser, f"/runs/{export.run.number}/checkpoints/")
    assert "/models/checkpoints/" not in checkpoints


def test_a_refusal_says_who_can(browser: Client, ada: User, checkpoint: Checkpoint) -> None:
    become(ada, Role.VIEWER)
    refusal = page(browser, f"/models/checkpoints/{checkpoint.pk}/export/", 403)
    assert "Your role in Main is viewer, which exports no models" in refusal
    assert "a researcher or admin of Main" in refusal


def test_somebody_elses_export_is_changed_by_its_maker_its_runs_owner_and_admins(
    browser: Client, ada: User, bob: User, checkpoint: Checkpoint
) -> None:
    export = make_ready(checkpoint, bob)
    eve = User.objects.create_user("eve")
    address = f"/models/exports/{export.pk}/keep/"
    for person, role, status in (
        (ada, Role.RESEARCHER, 302),
        (bob, Role.RESEARCHER, 302),
        (bob, Role.VIEWER, 403),
        (eve, Role.RESEARCHER, 403),
        (eve, Role.ADMIN, 302),
    ):
        become(person, role)
        client = Client()
        client.force_login(person)
        assert client.post(address, {"keep": "1"}).status_code == status, (person, role)
    become(eve, Role.RESEARCHER)
    browser.force_login(eve)
    assert "made by bob of ada" in browser.post(address).content.decode()


def test_nothing_of_another_project_is_listed(
    browser: Client, ada: User, export: ModelExport
) -> None:
    secret = Project.objects.create(slug="secret", name="Secret")
    Run.objects.filter(pk=export.run_id).update(project=secret)
    for address in ("/models/", "/models/exports/", "/models/?q=Add"):
        assert export.run.name not in page(browser, address)
    page(browser, f"/models/exports/{export.pk}/", 404)
    page(browser, f"/models/exports/{export.pk}/download.tar", 404)
    become(ada, Role.RESEARCHER, secret)
    text = page(browser, "/models/")
    assert text.count("in Secret") == 2
    assert export.run.name not in page(browser, "/models/?project=main")
    assert export.run.name in page(browser, "/models/?project=secret")


def test_checkpoints_stand_with_what_they_achieved(browser: Client, checkpoint: Checkpoint) -> None:
    text = page(browser, "/models/")
    assert "40.0 %" in text
    assert "started at" in text
    assert "Add digits" in text
    number = checkpoint.run.number
    for words, is_there in (("add", True), (f"#{number}", True), ("nothing of it", False)):
        found = page(browser, f"/models/?q={words.replace('#', '%23')}")
        assert ("Add digits" in found) == is_there
        assert ("No checkpoint fits" in found) != is_there


def test_a_checkpoint_at_a_step_without_evaluation_says_so(browser: Client, story: Story) -> None:
    story.step(70).checkpoint(70)
    assert "not evaluated at this step" in page(browser, "/models/")


def test_a_hostile_page_number_shows_a_page(browser: Client, checkpoint: Checkpoint) -> None:
    for number in ("0", "-1", "99999999999999999999", "x", "２"):
        assert "Add digits" in page(browser, f"/models/?page={number}")


def test_asking_for_an_export_and_watching_it(browser: Client, checkpoint: Checkpoint) -> None:
    dialog = page(browser, f"/models/checkpoints/{checkpoint.pk}/export/")
    assert "float32" in dialog
    assert "bfloat16" in dialog
    answer = browser.post(f"/models/checkpoints/{checkpoint.pk}/export/", {"dtype": "bfloat16"})
    export = ModelExport.objects.get()
    assert answer.headers["Location"] == f"/models/exports/{export.pk}/"
    assert "one export is made at a time" in page(browser, f"/models/exports/{export.pk}/")
    ModelExport.objects.update(state="running", done=1, total=4, doing="Writing the weights")
    text = page(browser, f"/models/exports/{export.pk}/progress/")
    assert "Writing the weights" in text
    assert "25" in text
    assert "making" in page(browser, "/models/exports/")
    answer = browser.post(f"/models/exports/{export.pk}/cancel/", follow=True)
    assert "The export is cancelled" in answer.content.decode()
    assert "Make it again" in answer.content.decode()


def test_a_wish_that_cannot_be_stands_in_the_dialog(
    browser: Client, checkpoint: Checkpoint
) -> None:
    address = f"/models/checkpoints/{checkpoint.pk}/export/"
    answer = browser.post(address, {"dtype": "int4"})
    assert answer.status_code == 422
    assert "use float32 or bfloat16" in answer.content.decode()
    shutil.rmtree(checkpoint.directory)
    text = page(browser, address)
    assert "no longer on disk" in text
    assert "Make the folder" not in text


def test_a_failed_one_says_why_and_is_its_makers_alone(
    browser: Client, bob: User, checkpoint: Checkpoint, ada: User
) -> None:
    failed = {"state": "failed", "message": "The disk is full.", "advice": "Delete exports."}
    export = make_export(checkpoint, bob, **failed)
    assert "The disk is full." not in page(browser, "/models/exports/")
    text = page(browser, f"/models/exports/{export.pk}/")
    assert "The disk is full." in text
    assert "Delete exports." in text
    ModelExport.objects.update(owner=ada)
    assert "The disk is full." in page(browser, "/models/exports/")


def test_the_page_of_a_ready_one_says_what_was_checked(
    browser: Client, export: ModelExport
) -> None:
    text = page(browser, f"/models/exports/{export.pk}/")
    assert "every logit over 31 tokens equals" in text
    for name in CONTENT:
        assert name in text
    ModelExport.objects.update(check_result=None)
    assert "too little memory" in page(browser, f"/models/exports/{export.pk}/")


def body_of(answer: StreamingHttpResponse) -> bytes:
    """Read as the server reads it: the body is an asynchronous stream."""

    async def collect() -> bytes:
        return b"".join([block async for block in answer])

    return asyncio.run(collect())


def fetch(browser: Client, export: ModelExport, **headers: str) -> StreamingHttpResponse:
    address = f"/models/exports/{export.pk}/download.tar"
    return browser.get(address, headers=headers)  # type: ignore[return-value]


def test_a_download_resumes_where_it_broke(browser: Client, export: ModelExport) -> None:
    whole = fetch(browser, export)
    assert whole.status_code == 200
    assert export.slug in whole.headers["Content-Disposition"]
    content = body_of(whole)
    assert len(content) == int(whole.headers["Content-Length"])
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        names = tar.getnames()
    assert names == [f"{export.slug}/{name}" for name in CONTENT]
    etag = whole.headers["ETag"]
    rest = fetch(browser, export, range="bytes=3000-", if_range=etag)
    assert rest.status_code == 206
    assert rest.headers["Content-Range"] == f"bytes 3000-{len(content) - 1}/{len(content)}"
    assert body_of(rest) == content[3000:]
    assert fetch(browser, export, range="bytes=3000-", if_range='"other"').status_code == 200
    assert fetch(browser, export, if_none_match=etag).status_code == 304
    beyond = fetch(browser, export, range=f"bytes={len(content)}-")
    assert beyond.status_code == 416
    assert beyond.headers["Content-Range"] == f"bytes */{len(content)}"


def test_a_download_is_noted_when_it_begins(browser: Client, export: ModelExport) -> None:
    address = f"/models/exports/{export.pk}/download.tar"
    fetch(browser, export)
    fetch(browser, export, range="bytes=3000-")
    browser.head(address)
    (entry,) = AuditEntry.objects.filter(action="export.download")
    assert (entry.actor, entry.label) == ("ada", export.slug)


def test_who_leaves_out_the_first_byte_is_noted(browser: Client, export: ModelExport) -> None:
    fetch(browser, export, range="bytes=1-")
    fetch(browser, export, range="bytes=3000-")
    (entry,) = AuditEntry.objects.filter(action="export.download")
    assert (entry.actor, entry.key) == ("ada", str(export.pk))


def test_the_head_of_a_download(browser: Client, export: ModelExport) -> None:
    answer = browser.head(f"/models/exports/{export.pk}/download.tar")
    assert answer.status_code == 200
    assert int(answer.headers["Content-Length"]) > sum(map(len, CONTENT.values()))
    assert answer.headers["Accept-Ranges"] == "bytes"


def test_what_is_gone_is_gone(browser: Client, export: ModelExport) -> None:
    shutil.rmtree(export.folder.root)
    assert fetch(browser, export).status_code == 410
    ModelExport.objects.update(state="expired")
    assert fetch(browser, export).status_code == 410
    ModelExport.objects.update(state="running")
    assert fetch(browser, export).status_code == 404


def test_a_new_run_on_an_export(browser: Client, export: ModelExport) -> None:
    (export.folder.model / "config.json").write_text("{}")
    answer = browser.post(f"/models/exports/{export.pk}/use/")
    assert answer.status_code == 302
    export.refresh_from_db()
    assert export.is_kept
    text = page(browser, answer.headers["Location"])
    assert str(export.folder.model) in text
    assert f"On {export.run.name}" in text


def test_weights_of_a_run_do_not_travel_to_another_project(
    browser: Client, ada: User, export: ModelExport
) -> None:
    """A path below the folders of runs and exports counts for the run's own project alone."""
    secret = Project.objects.create(slug="secret", name="Secret")
    ref = str(export.folder.model)
    run = launch(ada, model={"ref": ref})
    assert run.project.slug == "main"
    Run.objects.filter(pk=export.run_id).update(project=secret)
    document = {"mode": "yaml", "yaml": spec_to_yaml(run.read_spec())}
    text = browser.post("/runs/new/check/", document).content.decode()
    assert "is no model that this server can read" in text
    become(ada, Role.RESEARCHER, secret)
    text = page(browser, f"/runs/new/?model={ref}")
    assert "is no model that this server can read" not in text


def test_deleting_names_the_consequence(browser: Client, export: ModelExport) -> None:
    address = f"/models/exports/{export.pk}/delete/"
    assert "The checkpoint stays" in page(browser, address)
    answer = browser.post(address, follow=True)
    assert "The export is deleted." in answer.content.decode()
    assert browser.post(address).status_code == 404


def test_an_archived_project_makes_no_exports(
    browser: Client, export: ModelExport, checkpoint: Checkpoint
) -> None:
    Project.objects.update(archived_at=timezone.now())
    for address in (
        f"/models/checkpoints/{checkpoint.pk}/export/",
        f"/models/exports/{export.pk}/delete/",
    ):
        assert "is archived: nothing new is made in it" in page(browser, address, 403)
    assert fetch(browser, export).status_code == 200
