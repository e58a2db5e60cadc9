"""Asking for exports, watching and downloading them as a program."""

from __future__ import annotations

import asyncio
import io
import shutil
import tarfile
from collections.abc import Callable
from typing import Any

import pytest
from django.http import StreamingHttpResponse

from tests.webapp.api.conftest import Program
from tests.webapp.members import become
from tests.webapp.registry.exports import CONTENT, make_export, make_ready
from tests.webapp.stories import Story, launch
from webapp.accounts.models import Project, Role, User
from webapp.api.scopes import Scope
from webapp.audit.models import AuditEntry
from webapp.registry.models import ModelExport
from webapp.runs.models import Checkpoint, Run

State = ModelExport.State


@pytest.fixture
def checkpoint(ada: User) -> Checkpoint:
    """The best one of a run of Ada's, after step 61; step 70 came later."""
    story = Story(launch(ada)).start()
    story.step(61).checkpoint(61, best=True).step(70).checkpoint(70)
    return Checkpoint.objects.select_related("run__project").get(run=story.run, step=61)


@pytest.fixture
def export(checkpoint: Checkpoint, ada: User) -> ModelExport:
    return make_ready(checkpoint, ada)


def ask(program: Program, checkpoint: Checkpoint, sent: Any, **headers: str) -> Any:
    return program.post(f"/runs/{checkpoint.run.number}/exports", sent, **headers)


def fetch(program: Program, export: ModelExport, **headers: str) -> StreamingHttpResponse:
    address = f"/api/v1/exports/{export.pk}/download.tar"
    return program.client.get(address, headers={**program.headers, **headers})  # type: ignore[return-value]


def body_of(answer: StreamingHttpResponse) -> bytes:
    """Read as the server reads it."""

    async def collect() -> bytes:
        return b"".join([block async for block in answer])

    return asyncio.run(collect())


def test_a_wish_is_queued_and_the_same_wish_finds_it(
    program: Program, checkpoint: Checkpoint
) -> None:
    answer = ask(program, checkpoint, {"checkpoint": "best"})
    assert answer.status_code == 201, answer.content
    document = answer.json()
    export = ModelExport.objects.get()
    assert document["id"] == str(export.pk)
    assert (document["state"], document["step"], document["dtype"]) == ("queued", 61, "float32")
    assert document["run"] == checkpoint.run.number
    assert document["folder"] == export.slug
    assert ask(program, checkpoint, {"checkpoint": 61}).json() == document
    assert program.get(f"/exports/{export.pk}").json() == document
    assert ask(program, checkpoint, {"dtype": "bfloat16"}).json()["step"] == 70
    listed = program.get(f"/runs/{checkpoint.run.number}/exports").json()["items"]
    assert [item["step"] for item in listed] == [70, 61]
    [made, _] = AuditEntry.objects.filter(action="export.make").order_by("pk")
    assert (made.actor, made.label) == ("ada", export.slug)


def test_a_key_is_one_wish(program: Program, checkpoint: Checkpoint) -> None:
    key = {"Idempotency-Key": "nightly"}
    first = ask(program, checkpoint, {"checkpoint": "best"}, **key)
    ModelExport.objects.all().delete()
    again = ask(program, checkpoint, {"checkpoint": "best"}, **key)
    assert again["Idempotency-Replayed"] == "true"
    assert again.json() == first.json()
    assert not ModelExport.objects.exists()
    assert ask(program, checkpoint, {"checkpoint": "latest"}, **key).status_code == 422


@pytest.mark.parametrize(
    ("sent", "field"),
    [({"checkpoint": "newest"}, "checkpoint"), ({"dtype": "int4"}, "dtype"), ({"as": 1}, "as")],
)
def test_a_wrong_wish_names_its_field(
    program: Program, checkpoint: Checkpoint, sent: Any, field: str
) -> None:
    answer = ask(program, checkpoint, sent)
    assert answer.status_code == 422
    assert [error["field"] for error in answer.json()["errors"]] == [field]


def test_what_cannot_be_exported_says_why(program: Program, checkpoint: Checkpoint) -> None:
    answer = ask(program, checkpoint, {"checkpoint": 62})
    assert answer.status_code == 422
    assert "has no checkpoint 62 on disk" in answer.json()["detail"]
    shutil.rmtree(checkpoint.directory)
    answer = ask(program, checkpoint, {"checkpoint": "best"})
    assert answer.status_code == 409
    assert "no longer on disk" in answer.json()["detail"]


def test_a_viewer_downloads_and_makes_none(
    program: Program, ada: User, export: ModelExport, checkpoint: Checkpoint
) -> None:
    become(ada, Role.VIEWER)
    assert fetch(program, export).status_code == 200
    answer = ask(program, checkpoint, {"checkpoint": "best"})
    assert answer.status_code == 403
    assert "is viewer, which exports no models" in answer.json()["detail"]


def test_nothing_of_another_project_is_there(
    program: Program, checkpoint: Checkpoint, export: ModelExport
) -> None:
    secret = Project.objects.create(slug="secret", name="Secret")
    Run.objects.filter(pk=export.run_id).update(project=secret)
    assert ask(program, checkpoint, {}).status_code == 404
    assert program.get(f"/runs/{checkpoint.run.number}/exports").status_code == 404
    assert program.get(f"/exports/{export.pk}").status_code == 404
    assert fetch(program, export).status_code == 404
    assert program.post(f"/exports/{export.pk}/cancel").status_code == 404
    assert program.delete(f"/exports/{export.pk}").status_code == 404
    assert ModelExport.objects.filter(pk=export.pk).exists()


def test_a_download_resumes_where_it_broke(program: Program, export: ModelExport) -> None:
    whole = fetch(program, export)
    assert whole.status_code == 200
    content = body_of(whole)
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        assert tar.getnames() == [f"{export.slug}/{name}" for name in CONTENT]
    rest = fetch(program, export, range="bytes=3000-", if_range=whole["ETag"])
    assert rest.status_code == 206
    assert rest["Content-Range"] == f"bytes 3000-{len(content) - 1}/{len(content)}"
    assert body_of(rest) == content[3000:]
    assert fetch(program, export, if_none_match=whole["ETag"]).status_code == 304
    beyond: Any = fetch(program, export, range=f"bytes={len(content)}-")
    assert beyond.status_code == 416
    assert beyond["Content-Range"] == f"bytes */{len(content)}"
    assert beyond.json()["status"] == 416
    [entry] = AuditEntry.objects.filter(action="export.download")
    assert (entry.actor, entry.label) == ("ada", export.slug)


def test_one_that_is_not_there_says_what_it_is(program: Program, export: ModelExport) -> None:
    for state, status, words in (
        (State.RUNNING, 409, "still being made"),
        (State.EXPIRED, 410, "is expired"),
        (State.CANCELLED, 410, "is cancelled"),
    ):
        ModelExport.objects.update(state=state)
        answer: Any = fetch(program, export)
        assert answer.status_code == status
        assert words in answer.json()["detail"]
    ModelExport.objects.update(state=State.FAILED, message="The disk is full.")
    answer = fetch(program, export)
    assert "The disk is full." in answer.json()["detail"]


def test_cancelling_and_deleting(program: Program, checkpoint: Checkpoint, ada: User) -> None:
    export = make_export(checkpoint, ada)
    answer = program.post(f"/exports/{export.pk}/cancel")
    assert answer.json()["state"] == "cancelled"
    assert program.post(f"/exports/{export.pk}/cancel").status_code == 409
    assert program.delete(f"/exports/{export.pk}").status_code == 204
    assert program.delete(f"/exports/{export.pk}").status_code == 404


def test_one_that_a_run_needs_is_not_deleted(
    program: Program, ada: User, export: ModelExport
) -> None:
    (export.folder.model / "config.json").write_text("{}")
    run = launch(ada, model={"ref": str(export.folder.model)})
    answer = program.delete(f"/exports/{export.pk}")
    assert answer.status_code == 409
    assert f"#{run.number}" in answer.json()["detail"]


def test_whose_it_is_decides_with_the_scope(
    program_of: Callable[..., Program], bob: User, ada: User, export: ModelExport
) -> None:
    """An admin's token changes others' exports with the scope admin; the run's owner needs none."""
    become(bob, Role.ADMIN)
    refused = program_of(bob).delete(f"/exports/{export.pk}")
    assert refused.status_code == 403
    assert 'scope="admin"' in refused["WWW-Authenticate"]
    ModelExport.objects.update(owner=bob)
    assert program_of(ada).delete(f"/exports/{export.pk}").status_code == 204
    again = make_ready(export.checkpoint, ada)  # type: ignore[arg-type]
    everything = program_of(bob, *Scope)
    assert everything.delete(f"/exports/{again.pk}").status_code == 204
