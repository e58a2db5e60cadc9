"""A backup, taken while runs are live, brings everything back: rows, charts, files."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.architecture.sources import ROOT
from tests.engines import Engines
from tests.launcher.installation_digest import read_charts, read_files, read_rows
from tests.webapp.glass import steps
from tests.webapp.registry.exports import make_ready
from tests.webapp.stories import Story, launch
from webapp.accounts.models import User
from webapp.comments.services import add_comment, edit_comment
from webapp.control.verdicts import Verdict
from webapp.datasets import services as datasets
from webapp.datasets.mapping import Mapping
from webapp.glass.services import delete_step
from webapp.launcher import backup, backup_files
from webapp.launcher.errors import LauncherError
from webapp.launcher.paths import RESTORE_NOTE
from webapp.launcher.postgres import EmbeddedPostgres
from webapp.launcher.restore import restore
from webapp.lifecycle import abandon_attempt
from webapp.runs.models import Attempt, Checkpoint, Run
from webapp.webhooks.models import Endpoint
from webapp.webhooks.outbox import note_test
from webapp.webhooks.services import disable, make_endpoint

pytestmark = pytest.mark.django_db(transaction=True)
LATE = "what happened after the dump"
CHANGE_THE_LOG = """
import django
django.setup()
from webapp.audit.models import AuditEntry
AuditEntry.objects.update(label="another")
"""


@pytest.fixture(autouse=True)
def installation(
    engines: Engines, settings: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """Folders of this test, and the tests' database for pg_dump."""
    for name in ("runs", "uploads", "glass", "exports", "models"):
        setattr(settings, f"{name.upper()}_DIR", tmp_path / "state" / name)
        (tmp_path / "state" / name).mkdir(parents=True)
    monkeypatch.setenv("DATABASE_URL", engines.child_environment()["DATABASE_URL"])
    return tmp_path / "state"


@pytest.fixture(autouse=True)
def mask_restored() -> Iterator[None]:
    """A restore sets the mask of its process."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture
def ada() -> User:
    return User.objects.create_superuser("ada", password="a-long-password")


@pytest.fixture
def finished(ada: User) -> Run:
    story = Story(launch(ada, "Finished")).start().say("hello\n")
    for step in range(1, 13):
        story.step(step)
    story.rollouts(12).checkpoint(12, best=True).evaluate(12, "final", "End", 0.4)
    return story.finish("succeeded", "done", "All steps are done.")


@pytest.fixture
def dataset(ada: User) -> None:
    job = datasets.store_upload(
        ada,
        "sums.csv",
        [b"prompt,answer\n" + b"".join(b"%d+1,%d\n" % (n, n + 1) for n in range(8))],
    )
    datasets.start_import(job, "Sums", Mapping("prompt", "answer"), "")
    datasets.run_import(job.pk)
    job.refresh_from_db()
    assert job.state == job.State.DONE, (job.message, job.errors)


@pytest.fixture
def company(finished: Run, ada: User) -> None:
    """What stands around a run: comments, webhooks, steps under glass, the audit log."""
    comment = add_comment(finished, ada, "Look at *this*", step="3")
    edit_comment(comment, "Look at **that**")
    for url in ("https://on.example/hook", "https://off.example/hook"):
        wanted = {"url": url, "project": None, "kinds": ["run.failed"]}
        note_test(make_endpoint(ada, wanted))
    disable(Endpoint.objects.get(url__contains="off"), "It answered 410.", ada)
    make_ready(finished.checkpoints.get(), ada)
    steps.finish(steps.ask(ada))
    steps.claim(steps.ask(ada, seed="1"))


def manage(base: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command in an installation of its own, with its own embedded PostgreSQL."""
    return subprocess.run(
        [sys.executable, *arguments], env=own(base), cwd=ROOT, capture_output=True, text=True
    )


def own(base: Path) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    return {**inherited, "TEMPER_DATA_DIR": str(base)}


def restored(base: Path, folder: Path) -> dict[str, Any]:
    """Restore into an empty directory, and read everything there."""
    done = manage(base, "manage.py", "restore", str(folder))
    assert done.returncode == 0, done.stderr
    assert "Start with `manage.py up`" in done.stdout
    assert not (base / RESTORE_NOTE).exists()
    engine = EmbeddedPostgres(base, disposable=True)
    assert engine.running_process() is None, "what the command started it has stopped"
    engine.start()
    told = manage(base, "-m", "tests.launcher.installation_digest", "ada")
    assert told.returncode == 0, told.stderr
    found: dict[str, Any] = json.loads(told.stdout)
    return found


def test_rows_charts_and_files_come_back(
    finished: Run,
    dataset: None,
    company: None,
    installation: Path,
    tmp_path: Path,
    base: Path,
) -> None:
    (installation / "models" / "prepared").mkdir()
    (installation / "models" / "prepared" / "weights").write_text("made again")
    before = {"charts": read_charts("ada"), "rows": read_rows()}  # signing in makes rows too
    kept = ("runs", "uploads", "glass", "exports")
    files = read_files(*(installation / name for name in kept))
    said: list[str] = []
    made = backup.take_backup(tmp_path / "kept", said.append)
    assert (made.runs, made.datasets, made.has_models) == (1, 1, False)
    assert (tmp_path / "kept").stat().st_mode & 0o777 == 0o700
    shutil.rmtree(installation)

    after = restored(base, tmp_path / "kept")
    assert after["charts"] == before["charts"]
    assert before["charts"][str(finished.number)]["curves"]
    for table, rows in before["rows"].items():
        assert after["rows"][table] == rows, table
    assert len(before["rows"]["datasets.DatasetRecord"]) == 8
    for table in ("webhooks.Endpoint", "webhooks.Delivery", "glass.GlassStep"):
        assert len(before["rows"][table]) == 2, table
    for table in ("comments.Comment", "comments.CommentEdit", "registry.ModelExport"):
        assert len(before["rows"][table]) == 1, table
    noted = " ".join(before["rows"]["audit.AuditEntry"])
    for action in ("dataset.import", "webhook.make", "webhook.disable", "glass.ask"):
        assert f"'{action}'" in noted
    assert read_files(*(base / name for name in kept)) == files
    assert any(name.endswith("/result.json") for name in files)
    assert any(name.endswith("/model/model.safetensors") for name in files)
    refused = manage(base, "-c", CHANGE_THE_LOG)
    assert "append-only: UPDATE is refused" in refused.stderr, "the guard of the log comes back too"
    assert not (base / "models").exists() or not read_files(base / "models")
    assert (base / "secret_key").stat().st_mode & 0o777 == 0o600


def test_runs_that_go_on_meanwhile_lose_nothing(
    ada: User,
    installation: Path,
    tmp_path: Path,
    base: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Between dump and copy: more steps, a checkpoint that replaces another, another attempt."""
    going = Story(launch(ada, "Going on")).start()
    again = Story(launch(ada, "Begun again")).start()
    for story in (going, again):
        for step in range(1, 11):
            story.step(step)
        story.checkpoint(5).checkpoint(10)
    shown = steps.finish(steps.ask(ada))
    copy_files = backup.copy_files

    def later(*arguments: Any) -> None:
        assert delete_step(shown, ada)
        for step in range(11, 16):
            going.step(step)
        shutil.rmtree(going.run.run_dir.checkpoint(5))
        going.checkpoint(15, removed=["checkpoints/step-000005"])
        with going.run.run_dir.events_file(1).open("ab") as events:
            events.write(b'{"kind": "metr')  # a line that is being written
        begin_again(again)
        copy_files(*arguments)

    monkeypatch.setattr(backup, "copy_files", later)
    backup.take_backup(tmp_path / "kept", lambda _: None)
    charts = read_charts("ada")

    after = restored(base, tmp_path / "kept")
    assert without_cursors(after["charts"]) == without_cursors(charts), LATE
    events = base / "runs" / str(going.run.pk) / "attempts" / "1" / "events.jsonl"
    assert events.read_bytes().endswith(b"}\n"), "up to its last whole line"
    assert len(after["rows"]["glass.GlassStep"]) == 1, "its page says that the result is gone"
    numbers = [row for row in after["rows"]["runs.Run"] if "'attempt': 2" in row]
    assert len(numbers) == 1, "the row knows the attempt that its dump did not"


def without_cursors(charts: dict[str, Any]) -> dict[str, Any]:
    """Everything but the version of the rows, which counts the batches that they came in."""
    return {run: {**chart, "cursor": 0} for run, chart in charts.items()}


def begin_again(story: Story) -> None:
    """The worker is lost, another takes the run from step 10."""
    assert story.claim is not None
    abandon_attempt(story.claim, Verdict("failed", "worker_lost", "gone", retryable=True))
    Run.objects.filter(pk=story.run.pk).update(state="queued", lease_owner="", lease_until=None)
    story.run.refresh_from_db()
    story.start(start_step=10)
    for step in range(11, 14):
        story.step(step)


def test_a_checkpoint_that_vanishes_is_left_out_whole(tmp_path: Path) -> None:
    """The retention rule removes one while it is copied; the newest is tried again."""
    source = tmp_path / "run"
    for step in (5, 10):
        folder = source / "checkpoints" / f"step-{step:06d}"
        folder.mkdir(parents=True)
        for name in ("a", "b"):
            (folder / name).write_text(f"{step}{name}")

    class Vanishing(backup_files.Copier):
        def copy(self, source: Path, name: str) -> backup_files.FileEntry:
            made = super().copy(source, name)
            if name.endswith("step-000010/a"):  # a newer one is whole, this one goes
                newest = source.parents[1] / "step-000015"
                newest.mkdir()
                (newest / "a").write_text("15a")
                shutil.rmtree(source.parent)
            return made

    copier = Vanishing(tmp_path / "out", lambda _: None)
    backup_files.copy_run(copier, source, "run")
    assert sorted(copier.files) == [
        "run/checkpoints/step-000005/a",
        "run/checkpoints/step-000005/b",
        "run/checkpoints/step-000015/a",
    ]
    assert not (tmp_path / "out/run/checkpoints/step-000010").exists()


def test_two_names_of_one_file_stay_so(tmp_path: Path) -> None:
    source = tmp_path / "runs"
    for name in ("parent", "child"):
        (source / name / "checkpoints" / "step-000005").mkdir(parents=True)
    weights = source / "parent/checkpoints/step-000005/weights"
    weights.write_text("large")
    os.link(weights, source / "child/checkpoints/step-000005/weights")
    copier = backup_files.Copier(tmp_path / "out", lambda _: None)
    copier.copy_tree(source, "runs")
    copies = list((tmp_path / "out").rglob("weights"))
    assert len(copies) == 2
    assert len({path.stat().st_ino for path in copies}) == 1
    assert len(copier.files) == 2


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(LauncherError) as caught:
        call()
    return str(caught.value)


def test_what_a_backup_refuses(installation: Path, tmp_path: Path) -> None:
    def take(target: Path) -> str:
        return refusal(lambda: backup.take_backup(target, lambda _: None))

    (tmp_path / "taken").mkdir()
    assert "exists already" in take(tmp_path / "taken")
    assert "which is backed up" in take(installation / "runs" / "kept")


def test_a_backup_that_fails_leaves_nothing(
    finished: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(backup, "copy_files", full)
    (tmp_path / "backups").mkdir()
    told = refusal(lambda: backup.take_backup(tmp_path / "backups" / "kept", lambda _: None))
    assert "No space left" in told
    assert list((tmp_path / "backups").iterdir()) == []


@pytest.fixture
def kept(finished: Run, tmp_path: Path) -> Path:
    backup.take_backup(tmp_path / "kept", lambda _: None)
    return tmp_path / "kept"


def test_a_database_with_tables_is_never_overwritten(kept: Path, installation: Path) -> None:
    runs = Run.objects.count()
    assert "has tables already" in refusal(lambda: restore(kept, lambda _: None))
    assert Run.objects.count() == runs


def test_a_damaged_backup_is_found_out_and_restored_once_it_is_mended(
    kept: Path, base: Path
) -> None:
    [events] = kept.rglob("events.jsonl")
    whole = events.read_bytes()
    events.write_bytes(whole[:-2])
    assert "missing or has another size" in manage(base, "manage.py", "restore", str(kept)).stderr
    events.write_bytes(whole[:-3] + b"9}\n")
    failed = manage(base, "manage.py", "restore", str(kept))
    assert failed.returncode == 1
    assert "The backup is damaged" in failed.stderr
    assert "Traceback" not in failed.stderr
    refused = manage(base, "manage.py", "up")
    assert "was interrupted: repeat `manage.py restore" in refused.stderr
    events.write_bytes(whole)
    assert len(restored(base, kept)["rows"]["runs.Run"]) == 1


def test_folders_with_files_and_newer_code(kept: Path, base: Path) -> None:
    (base / "runs" / "somebody-elses").mkdir(parents=True)
    assert "holds somebody-elses" in manage(base, "manage.py", "restore", str(kept)).stderr
    manifest = json.loads((kept / "manifest.json").read_text())
    manifest["migrations"].append("runs.9999_from_tomorrow")
    (kept / "manifest.json").write_text(json.dumps(manifest))
    told = manage(base, "manage.py", "restore", str(kept)).stderr
    assert "lacks 1 of its migrations, such as runs.9999_from_tomorrow" in told
    assert "is no backup" in manage(base, "manage.py", "restore", str(base)).stderr


def test_rows_of_checkpoints_that_are_gone(finished: Run, base: Path, tmp_path: Path) -> None:
    """Removed between dump and copy, and no event says so yet."""
    shutil.rmtree(finished.run_dir.checkpoint(12))
    assert Checkpoint.objects.on_disk().count() == 1
    assert Attempt.objects.count() == 1
    backup.take_backup(tmp_path / "kept", lambda _: None)
    rows = restored(base, tmp_path / "kept")["rows"]["runs.Checkpoint"]
    assert "'removed_at': None" not in rows[0]
