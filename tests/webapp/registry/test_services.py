"""Exports as rows: asked for once, made by one worker at a time, kept, expired and removed."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone
from pytest_django import DjangoCaptureOnCommitCallbacks

from tests.webapp.registry.exports import make_export, make_ready
from tests.webapp.stories import Story, launch
from training_core.contract.exports import ExportedFile, ExportProgress, ExportResult
from webapp.accounts.models import User
from webapp.audit.models import AuditEntry
from webapp.metrics.models import LiveEvent
from webapp.registry import dispatch, services
from webapp.registry.models import ModelExport
from webapp.registry.refusals import ExportRefused
from webapp.registry.services import ExportClaim
from webapp.runs.models import Checkpoint, Run

READY = ExportResult(
    outcome="ready", parameters=7, files=(ExportedFile(name="a", size=3, sha256="0" * 64),)
)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[UUID]:
    """Exports about which a worker was told."""
    found: list[UUID] = []
    monkeypatch.setattr(dispatch, "send_export", found.append)
    return found


def claim(export: ModelExport) -> ExportClaim:
    found = services.claim_export(export.pk)
    assert found is not None
    return found


def fall_silent(export: ModelExport) -> None:
    """Its worker was last heard of two minutes ago."""
    seen = timezone.now() - timedelta(minutes=2)
    ModelExport.objects.filter(pk=export.pk).update(seen_at=seen)


def state_of(export: ModelExport) -> str:
    return ModelExport.objects.get(pk=export.pk).state


def test_the_same_wish_twice_is_one_export(
    checkpoint: Checkpoint, ada: User, bob: User, sent: list[UUID]
) -> None:
    first = services.request_export(checkpoint, ada, "float32")
    assert services.request_export(checkpoint, bob, "float32") == first
    other = services.request_export(checkpoint, bob, "bfloat16")
    assert sent == [first.pk, other.pk]
    assert (first.state, first.owner, first.step) == ("queued", ada, 61)
    made = AuditEntry.objects.filter(action="export.make").order_by("pk")
    assert [(each.actor, each.project, each.label) for each in made] == [
        ("ada", "Main", first.slug),
        ("bob", "Main", other.slug),
    ]


def test_what_cannot_be_exported_is_refused(
    checkpoint: Checkpoint, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ExportRefused, match="float32 or bfloat16"):
        services.request_export(checkpoint, ada, "int4")
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
        with pytest.raises(ExportRefused, match="1 kB are free"):
            services.request_export(checkpoint, ada, "float32")
    shutil.rmtree(checkpoint.directory)
    with pytest.raises(ExportRefused, match="after step 61 is no longer on disk"):
        services.request_export(checkpoint, ada, "float32")
    assert not ModelExport.objects.exists()
    assert not AuditEntry.objects.filter(action="export.make").exists()


def test_the_checkpoint_is_held_and_the_order_says_what_to_make(
    checkpoint: Checkpoint, ada: User
) -> None:
    (checkpoint.directory / "model.safetensors").write_bytes(b"weights")
    (checkpoint.directory / "optimiser.safetensors").write_bytes(b"moments")
    taken = claim(make_export(checkpoint, ada, dtype="bfloat16"))
    shutil.rmtree(checkpoint.directory)  # what the retention rule does
    names = {path.name for path in taken.folder.source.iterdir()}
    assert names == {"manifest.json", "model.safetensors"}
    order = taken.folder.read_order()
    assert order.dtype == "bfloat16"
    assert order.documents.keys() == {"README.md", "lineage.json", "training_spec.yaml"}
    assert "Add digits" in order.documents["README.md"]


def test_a_checkpoint_that_went_before_a_worker_came(checkpoint: Checkpoint, ada: User) -> None:
    export = make_export(checkpoint, ada)
    shutil.rmtree(checkpoint.directory)
    assert services.claim_export(export.pk) is None
    export.refresh_from_db()
    assert export.state == "failed"
    assert "removed by the retention rule" in export.message
    assert not export.folder.root.exists()


def test_a_second_message_finds_nothing_to_claim(checkpoint: Checkpoint, ada: User) -> None:
    export = make_export(checkpoint, ada)
    claim(export)
    assert services.claim_export(export.pk) is None


def test_one_is_made_at_a_time_and_the_next_begins_when_it_ends(
    checkpoint: Checkpoint, ada: User, sent: list[UUID]
) -> None:
    first = make_export(checkpoint, ada)
    second = make_export(checkpoint, ada, dtype="bfloat16")
    taken = claim(first)
    assert services.claim_export(second.pk) is None
    assert state_of(second) == "queued"
    services.tend_exports()
    assert sent == []
    assert services.finish_export(taken, READY)
    assert sent == [second.pk]
    claim(second)


def test_a_worker_that_was_given_up_changes_nothing(checkpoint: Checkpoint, ada: User) -> None:
    """Its late end must not take the directory from the one that makes it now."""
    export = make_export(checkpoint, ada)
    late = claim(export)
    fall_silent(export)
    taken = claim(export)
    assert not services.report_export(late, None)
    assert not services.finish_export(late, READY)
    assert taken.folder.source.is_dir()
    assert services.report_export(taken, ExportProgress(done=1, total=5, message="Writing"))
    export.refresh_from_db()
    assert (export.state, export.attempts, export.done, export.doing) == (
        "running",
        2,
        1,
        "Writing",
    )


def test_a_worker_that_is_killed_again_and_again(
    checkpoint: Checkpoint, ada: User, sent: list[UUID]
) -> None:
    export = make_export(checkpoint, ada)
    for _ in range(services.MOST_ATTEMPTS):
        claim(export)
        fall_silent(export)
        services.tend_exports()
    assert sent == [export.pk] * services.MOST_ATTEMPTS
    assert services.claim_export(export.pk) is None
    export.refresh_from_db()
    assert (export.state, export.message) == (
        "failed",
        "The worker that made it was killed 3 times.",
    )
    assert not export.folder.root.exists()


def test_a_cancelled_export_ends_its_workers_claim(checkpoint: Checkpoint, ada: User) -> None:
    export = make_export(checkpoint, ada)
    taken = claim(export)
    assert services.cancel_export(export, ada)
    assert not services.cancel_export(export, ada)
    assert not services.report_export(taken, None)
    assert not services.finish_export(taken, READY)
    assert state_of(export) == "cancelled"
    assert not taken.folder.root.exists()
    assert AuditEntry.objects.filter(action="export.cancel", actor="ada").count() == 1


def test_a_finished_one_is_told_kept_and_expires(checkpoint: Checkpoint, ada: User) -> None:
    export = make_export(checkpoint, ada)
    taken = claim(export)
    taken.folder.model.mkdir()
    assert services.finish_export(taken, READY)
    export.refresh_from_db()
    assert (export.state, export.size_bytes, export.parameters) == ("ready", 3, 7)
    assert export.expires_at is not None
    hint = LiveEvent.objects.filter(topic=f"models@{export.run.project_id}").latest("pk")
    assert hint.data == {"id": str(export.pk), "state": "ready"}
    services.keep_export(export)
    services.tend_exports()
    assert state_of(export) == "ready"
    ModelExport.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    services.tend_exports()
    assert state_of(export) == "expired"
    assert not export.folder.root.exists()
    assert not export.folder.root.parent.exists()


def test_hints_of_exports_stay_in_their_project(checkpoint: Checkpoint, ada: User) -> None:
    services.request_export(checkpoint, ada, "float32")
    topics = set(LiveEvent.objects.filter(kind="export").values_list("topic", flat=True))
    assert topics == {f"models@{checkpoint.run.project_id}"}


def run_on(export: ModelExport, owner: User) -> Run:
    return launch(owner, name="On it", model={"ref": str(export.folder.model)})


def test_what_a_run_starts_from_stays(
    checkpoint: Checkpoint,
    ada: User,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    export = make_ready(checkpoint, ada)
    run = run_on(export, ada)
    with pytest.raises(ExportRefused, match=rf"Run #{run.number} starts from this export"):
        services.delete_export(export, ada)
    ModelExport.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    services.tend_exports()
    assert state_of(export) == "ready"
    Run.objects.filter(pk=run.pk).update(state="failed")
    folder = export.folder.root
    with django_capture_on_commit_callbacks(execute=True):
        services.delete_export(export, ada)
    assert not ModelExport.objects.exists()
    assert not folder.exists()
    (entry,) = AuditEntry.objects.filter(action="export.delete")
    assert (entry.actor, entry.kind, entry.after["step"]) == ("ada", "export", 61)


def test_one_that_is_being_made_is_not_deleted(checkpoint: Checkpoint, ada: User) -> None:
    export = make_export(checkpoint, ada)
    with pytest.raises(ExportRefused, match="cancel it first"):
        services.delete_export(export, ada)


def test_directories_that_belong_to_nobody_are_swept(
    checkpoint: Checkpoint, ada: User, settings: Any
) -> None:
    kept = make_ready(checkpoint, ada)
    making = claim(make_export(checkpoint, ada, dtype="bfloat16"))
    home = Path(settings.EXPORTS_DIR)
    of_run = kept.folder.root.parent
    orphan = of_run / "01999999-0000-7000-8000-000000000000"
    grave, foreign = of_run / ".deleted-abc", of_run / "notes"
    for path in (orphan, grave, foreign, home / "empty"):
        path.mkdir()
    services.sweep_directories()
    assert {path.name for path in of_run.iterdir()} == {
        kept.folder.root.name,
        making.folder.root.name,
        "notes",
    }
    assert {path.name for path in home.iterdir()} == {of_run.name}


def test_a_run_that_is_deleted_takes_its_exports_along(story: Story, ada: User) -> None:
    story.checkpoint(61)
    export = make_ready(Checkpoint.objects.get(run=story.run), ada)
    Run.objects.filter(pk=story.run.pk).delete()
    services.sweep_directories()
    assert not export.folder.root.parent.exists()
