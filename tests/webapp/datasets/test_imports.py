"""Imports: all or nothing, frozen versions, restarts, and what runs get."""

from __future__ import annotations

import hashlib
import json
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from tests.webapp.datasets.files import BAD_ROWS, BadRows, lines
from training_core.contract.domains import DatasetRecord
from webapp.accounts.models import User
from webapp.datasets import dispatch, imports, services
from webapp.datasets.mapping import Mapping
from webapp.datasets.models import Dataset, DatasetImport, DatasetVersion
from webapp.datasets.models import DatasetRecord as RecordRow
from webapp.metrics.models import LiveEvent

PROMPT_ANSWER = Mapping("prompt", "answer")


@pytest.fixture(autouse=True)
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, object]]:
    """What was given to the broker."""
    messages: list[tuple[str, object]] = []
    monkeypatch.setattr(dispatch, "send_task", lambda name, key: messages.append((name, key)))
    return messages


def upload(owner: User, content: bytes, file_name: str = "a.jsonl") -> DatasetImport:
    return services.store_upload(owner, file_name, [content])


def run(job: DatasetImport, name: str = "sums", mapping: Mapping = PROMPT_ANSWER) -> DatasetImport:
    assert services.start_import(job, name, mapping, "")
    services.run_import(job.pk)
    job.refresh_from_db()
    return job


def sums(count: int) -> bytes:
    return lines(*({"prompt": f"{i} + 1", "answer": i + 1} for i in range(count)))


def test_a_good_file_becomes_a_frozen_version(ada: User) -> None:
    job = run(upload(ada, sums(300)))
    assert (job.state, job.error_count, job.row_count) == ("done", 0, 300)
    version = job.version
    assert version is not None
    assert (version.number, version.record_count, version.state) == (1, 300, "ready")
    assert 30 < version.held_out_count < 90
    assert version.held_out_count == version.records.filter(split="held_out").count()
    assert services.find_version(str(version.pk)) == version


def test_the_run_gets_the_bytes_that_the_hash_is_of(ada: User, tmp_path: Path) -> None:
    version = run(upload(ada, sums(50))).version
    assert version is not None
    path = tmp_path / "run" / "datasets" / "v.jsonl"
    services.write_version(str(version.pk), path)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == version.content_hash
    records = [DatasetRecord.model_validate_json(line) for line in path.read_bytes().splitlines()]
    assert [r.answer for r in records] == [str(i + 1) for i in range(50)]
    assert list(path.parent.iterdir()) == [path]


def test_a_changed_record_is_never_written_for_a_run(ada: User, tmp_path: Path) -> None:
    version = run(upload(ada, sums(20))).version
    assert version is not None
    record = version.records.get(index=3)
    record.payload["answer"] = "5000"
    record.save()
    with pytest.raises(services.DatasetChangedError):
        services.write_version(str(version.pk), tmp_path / "v.jsonl")
    assert list(tmp_path.glob("*v.jsonl*")) == []


@pytest.mark.parametrize("case", BAD_ROWS, ids=lambda case: case.name)
def test_nothing_of_a_file_with_a_bad_row_is_imported(case: BadRows, ada: User) -> None:
    job = run(upload(ada, case.content, case.name))
    assert job.state == "rejected"
    found = [(e["row"], e["column"], e["code"]) for e in job.errors]
    assert found == case.errors
    assert job.error_count == len({row for row, _, _ in case.errors})
    assert f"{job.error_count} of {job.row_count}" in job.message
    assert not Dataset.objects.exists()
    assert not DatasetVersion.objects.exists()
    assert not RecordRow.objects.exists()


def test_the_first_thousand_reasons_are_kept_and_all_are_counted(ada: User) -> None:
    job = run(upload(ada, lines(*({"prompt": f"q{i}"} for i in range(1500)))))
    assert (len(job.errors), job.error_count) == (1000, 1500)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (lines({"prompt": "q", "answer": "1"}), "1 different prompt;"),
        (b"prompt,answer\n", "no rows"),
    ],
)
def test_a_file_too_small_is_rejected(content: bytes, says: str, ada: User) -> None:
    job = run(upload(ada, content, "a.csv" if content.startswith(b"prompt") else "a.jsonl"))
    assert job.state == "rejected"
    assert says in job.message


def test_duplicates_are_kept_once_and_counted(ada: User) -> None:
    version = run(upload(ada, sums(30) + sums(30))).version
    assert version is not None
    assert (version.record_count, version.duplicate_count) == (30, 30)


def test_one_question_is_on_one_side_whatever_its_answers(ada: User) -> None:
    rows = [{"prompt": f"q{i % 40}", "answer": f"a{i}"} for i in range(400)]
    version = run(upload(ada, lines(*rows))).version
    assert version is not None
    sides: dict[str, set[str]] = {}
    for record in version.records.all():
        prompt = record.payload["messages"][0]["content"]
        sides.setdefault(prompt, set()).add(record.split)
    assert len(sides) == 40
    assert all(len(side) == 1 for side in sides.values())


def test_a_second_file_of_the_same_name_is_version_two(ada: User) -> None:
    run(upload(ada, sums(10)))
    version = run(upload(ada, sums(12))).version
    assert version is not None
    assert version.number == 2
    assert Dataset.objects.count() == 1


def test_a_second_delivery_does_nothing(ada: User, sent: list[tuple[str, object]]) -> None:
    job = run(upload(ada, sums(10)))
    services.run_import(job.pk)
    assert DatasetVersion.objects.count() == 1
    assert not services.start_import(job, "again", PROMPT_ANSWER, "")


def test_an_import_that_was_killed_half_way_starts_over(
    ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imports, "BATCH", 10)
    job = upload(ada, sums(40))
    services.start_import(job, "sums", PROMPT_ANSWER, "")
    real = imports.record_line
    calls = iter(range(10**6))

    def die(record: DatasetRecord) -> bytes:
        if next(calls) == 25:
            raise KeyboardInterrupt
        return real(record)

    monkeypatch.setattr(imports, "record_line", die)
    with pytest.raises(KeyboardInterrupt):
        services.run_import(job.pk)
    assert DatasetVersion.objects.get().state == "building"
    assert services.find_version(DatasetVersion.objects.get().pk) is None
    monkeypatch.setattr(imports, "record_line", real)
    services.run_import(job.pk)  # not yet: it may still live
    assert DatasetImport.objects.get().state == "running"
    DatasetImport.objects.update(seen_at=timezone.now() - timedelta(minutes=2))
    services.run_import(job.pk)
    job.refresh_from_db()
    assert job.state == "done"
    assert DatasetVersion.objects.get() == job.version
    assert RecordRow.objects.count() == 40


def test_lost_messages_are_sent_again(
    ada: User, sent: list[tuple[str, object]], django_capture_on_commit_callbacks
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        job = upload(ada, sums(10))
        services.start_import(job, "sums", PROMPT_ANSWER, "")
    assert sent == [("import_dataset", job.pk)]
    with django_capture_on_commit_callbacks(execute=True):
        assert services.requeue_silent_imports() == 0
        DatasetImport.objects.update(seen_at=timezone.now() - timedelta(minutes=2))
        assert services.requeue_silent_imports() == 1
    assert len(sent) == 2


def test_a_file_that_is_gone_is_a_reason_not_a_crash(ada: User) -> None:
    job = upload(ada, sums(10))
    imports.upload_path(job).unlink()
    assert "cannot be read" in run(job).message


def test_progress_is_told(ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imports, "REPORT_EVERY_S", 0.0)
    job = run(upload(ada, sums(20)))
    told = LiveEvent.objects.filter(topic__startswith="datasets@", kind="import").order_by("id")
    states = [event.data["state"] for event in told]
    done = [event.data["done"] for event in told]
    assert states[-1] == "done"
    assert done == sorted(done)
    assert done[-1] == job.total == 2 * job.size_bytes


def test_unknown_versions_are_none() -> None:
    assert services.find_version("not-an-id") is None


@pytest.mark.django_db
def test_a_version_that_is_not_there_is_none() -> None:
    assert services.find_version("6b0f7b1e-0000-4000-8000-000000000000") is None


def test_json_is_kept_as_it_was(ada: User) -> None:
    hostile = "'; drop table \u202e <b>x</b> {{ 7*7 }} \\ \" é é"
    rows = [{"prompt": f"{hostile}{i}", "answer": hostile} for i in range(5)]
    version = run(upload(ada, json.dumps(rows[0]).encode() + b"\n" + lines(*rows[1:]))).version
    assert version is not None
    assert version.records.get(index=0).payload["answer"] == hostile
