"""Files made to break the import: names of megabytes, endless columns, characters that no database
takes, errors that quote the file, and files that kill the worker.
"""

from __future__ import annotations

import csv
import logging
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tests.webapp.datasets.files import lines
from webapp.accounts.models import User
from webapp.datasets import csv_rows, dispatch, imports, services
from webapp.datasets.columns import LONGEST_COLUMN, MOST_COLUMNS
from webapp.datasets.layout import detect, read_rows
from webapp.datasets.mapping import Mapping
from webapp.datasets.models import Dataset, DatasetImport, DatasetVersion
from webapp.datasets.rows import LONGEST_MESSAGE, FileError, RowError

MEGABYTES = "x" * 5_000_000
LONG_NAMES = {
    "long.csv": b"prompt,%s,answer\n" % MEGABYTES.encode(),
    "long.jsonl": lines({"prompt": "q", MEGABYTES: 1, "answer": "1"}),
    "nested.jsonl": lines({"prompt": "q", "meta": {MEGABYTES: {"a": 1, "b": 2}}}),
    "twice.csv": b"prompt,%s,%s\n" % (MEGABYTES.encode(), MEGABYTES.encode()),
}
NO_TEXT = {
    "nul.csv": b"prompt,an\0swer\n1,2\n",
    "half.csv": b"prompt,an\xed\xa0\x80swer\n1,2\n",
    "nul.jsonl": b'{"prompt": "q", "an\\u0000swer": "1"}\n',
    "half.jsonl": b'{"prompt": "q", "an\\ud800swer": "1"}\n',
    "inner.jsonl": b'{"prompt": "q", "meta": {"\\udfff": "1"}}\n',
}
PROMPT_ANSWER = Mapping("prompt", "answer")


@pytest.fixture(autouse=True)
def no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "send_task", lambda *_: True)


def look(tmp_path: Path, content: bytes, name: str) -> list[str]:
    path = tmp_path / "upload"
    path.write_bytes(content)
    return detect(path, name).columns


def queued(owner: User, content: bytes | None = None, name: str = "a.jsonl") -> DatasetImport:
    rows = lines(*({"prompt": f"q{i}", "answer": i} for i in range(30)))
    job = services.store_upload(owner, name, [content or rows])
    assert services.start_import(job, "sums", PROMPT_ANSWER, "")
    return job


def run(job: DatasetImport) -> DatasetImport:
    services.run_import(job.pk)
    job.refresh_from_db()
    return job


@pytest.mark.parametrize("name", LONG_NAMES)
def test_a_column_name_of_megabytes_is_refused_in_a_few_words(name: str, tmp_path: Path) -> None:
    with pytest.raises(FileError) as caught:
        look(tmp_path, LONG_NAMES[name], name)
    text = str(caught.value)
    assert "The name of column 2, '" in text
    assert f"at most {LONGEST_COLUMN}" in text
    assert "x" * 30 in text
    assert "x" * 41 not in text
    assert len(text) < 200


def test_the_longest_name_is_taken_and_one_more_is_not(tmp_path: Path) -> None:
    longest = "n" * LONGEST_COLUMN
    assert look(tmp_path, f"prompt,{longest}\n1,2\n".encode(), "a.csv")[1] == longest
    assert look(tmp_path, lines({longest: 1}), "a.jsonl") == [longest]
    for content, name in (
        (f"prompt,{longest}n\n".encode(), "a.csv"),
        (lines({"m": {longest: 1}}), "b"),
    ):
        with pytest.raises(FileError, match="at most 200"):
            look(tmp_path, content, name)


@pytest.mark.parametrize("name", NO_TEXT)
def test_a_name_that_is_no_text_is_refused_on_the_page(name: str, browser: Client) -> None:
    file = SimpleUploadedFile(name, NO_TEXT[name])
    for headers in (None, {"HX-Request": "true"}):
        file.seek(0)
        answer = browser.post(reverse("datasets:upload"), {"file": file}, headers=headers)
        assert answer.status_code == 422
        assert "column 2" in answer.content.decode()
    assert not DatasetImport.objects.exists()


@pytest.mark.parametrize("name", ["wide.csv", "wide.jsonl", "grows.jsonl"])
def test_a_thousand_columns_are_taken_and_one_more_is_not(name: str, tmp_path: Path) -> None:
    def file(count: int) -> bytes:
        names = [f"c{i}" for i in range(count)]
        if name == "wide.csv":
            return ",".join(names).encode() + b"\n1\n"
        if name == "wide.jsonl":
            return lines(dict.fromkeys(names, 1))
        return lines(*(dict.fromkeys(names[at : at + 10], 1) for at in range(0, count, 10)))

    assert len(look(tmp_path, file(MOST_COLUMNS), name)) == MOST_COLUMNS
    with pytest.raises(FileError, match="more than 1,000 columns"):
        look(tmp_path, file(MOST_COLUMNS + 1), name)


def test_endless_columns_end_at_once(tmp_path: Path) -> None:
    """Each of these took minutes when every name was looked for among all others."""
    names = [f"c{i}" for i in range(300_000)]
    with pytest.raises(FileError, match="more than 1,000 columns"):
        look(tmp_path, ",".join(names).encode() + b"\n", "a.csv")
    pairs = ",".join(f'"{name}": 1' for name in [*names, names[-1]])
    path = tmp_path / "upload"
    path.write_bytes(lines({"prompt": "q"}, f"{{{pairs}}}"))
    _, error = read_rows(path, detect(path, "a.jsonl"))
    assert isinstance(error, RowError)
    assert (error.row, error.code, error.message) == (
        2,
        "doubled_key",
        "The key 'c299999' stands twice.",
    )


def test_a_csv_row_without_end_is_not_held_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_rows, "MAX_LINE_BYTES", 1000)
    endless = b'"\n",' * 2000 + b'"\n"\n'
    with pytest.raises(FileError, match="row is longer than"):
        look(tmp_path, endless, "a.csv")
    path = tmp_path / "upload"
    path.write_bytes(b"prompt,answer\nq,1\n" + endless)
    errors = [row for row in read_rows(path, detect(path, "a.csv")) if isinstance(row, RowError)]
    assert (errors[0].row, errors[0].code) == (3, "bad_csv")
    assert "longer than" in errors[0].message


def test_errors_that_quote_the_file_are_cut(
    ada: User, browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def long_error(row: Any, mapping: Mapping) -> list[RowError]:
        return [RowError(row.number, MEGABYTES, "odd", MEGABYTES)]

    monkeypatch.setattr(imports, "make_record", long_error)
    monkeypatch.setattr("webapp.datasets.forms.make_record", long_error)
    job = run(queued(ada))
    assert job.error_count == 30
    assert {len(error[name]) for error in job.errors for name in ("column", "message")} == {
        LONGEST_MESSAGE
    }
    page = browser.get(reverse("datasets:import", args=[job.pk]) + "?columns=1")
    assert "What is wrong" in page.content.decode() or "Row 1" in page.content.decode()
    assert len(page.content) < 100_000
    assert len(str(FileError(MEGABYTES))) == LONGEST_MESSAGE


@pytest.mark.parametrize("where", ["detect", "make_record", "record_line"])
def test_an_error_that_nobody_expected_rejects_the_import(
    where: str, ada: User, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise ValueError(MEGABYTES)

    monkeypatch.setattr(imports, where, fail)
    with caplog.at_level(logging.ERROR, logger="webapp.datasets"):
        job = run(queued(ada))
    assert job.state == "rejected"
    assert job.message.startswith("The import failed for a reason of ours (ValueError)")
    assert not DatasetVersion.objects.exists()
    text = caplog.text
    assert str(job.pk) in text
    assert "import_file" in text  # the traceback
    assert len(text) < 5000


@pytest.mark.django_db(transaction=True)  # as in a worker: one refused statement undoes no other
def test_what_the_database_refuses_rejects_the_import(
    ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nul(row: Any, mapping: Mapping) -> list[RowError]:
        return [RowError(row.number, "an\0swer", "odd", "half \ud800")]

    monkeypatch.setattr(imports, "make_record", nul)
    job = run(queued(ada))
    assert (job.state, job.errors) == ("rejected", [])
    assert "for a reason of ours" in job.message


def killed(job: DatasetImport) -> None:
    """A worker begins it and dies; a minute passes."""
    with pytest.raises(KeyboardInterrupt):
        services.run_import(job.pk)
    DatasetImport.objects.update(seen_at=timezone.now() - timedelta(minutes=2))


def test_a_file_that_kills_its_worker_is_rejected_after_three_tries(
    ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object) -> None:
        raise KeyboardInterrupt

    job = queued(ada)
    real = imports.record_line
    monkeypatch.setattr(imports, "record_line", die)
    for attempt in range(1, services.MOST_ATTEMPTS + 1):
        killed(job)
        job.refresh_from_db()
        assert (job.state, job.attempts) == ("running", attempt)
    assert services.requeue_silent_imports() == 1
    job = run(job)
    assert (job.state, job.message) == ("rejected", services.KILLED)
    assert "killed 3 times" in job.message
    assert not DatasetVersion.objects.exists()
    assert services.requeue_silent_imports() == 0
    monkeypatch.setattr(imports, "record_line", real)
    assert services.start_import(job, "sums", PROMPT_ANSWER, "")
    assert run(job).state == "done"
    assert job.attempts == 1
    assert Dataset.objects.get().versions.count() == 1


def test_bad_rows_show_that_the_import_lives(ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imports, "REPORT_EVERY_S", 0.0)
    told: list[int] = []
    monkeypatch.setattr(imports, "_publish", lambda job: told.append(job.done))
    run(queued(ada, b"{\n" * 50 + lines({"prompt": "q", "answer": 1})))
    assert len(told) > 50


@pytest.mark.django_db
def test_the_database_logs_no_statement_of_an_error() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SHOW log_min_error_statement")
        assert cursor.fetchone() == ("panic",)


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_no_error_is_a_formula(start: str, browser: Client, ada: User) -> None:
    job = queued(ada)
    hostile = f"{start}HYPERLINK(1)"
    errors = [{"row": 1, "column": hostile, "code": "missing", "message": hostile}]
    DatasetImport.objects.update(state="rejected", errors=errors)
    answer = browser.get(reverse("datasets:import_errors", args=[job.pk]))
    table = list(csv.reader(answer.content.decode().splitlines(keepends=True)))
    assert table[1] == ["1", f"'{hostile}", "missing", f"'{hostile}"]


def test_a_column_whose_name_is_a_formula_is_plain_in_the_list_of_errors(
    browser: Client, ada: User
) -> None:
    job = services.store_upload(ada, "a.csv", [b"=1+1,answer\nq,1\n,2\n"])
    services.start_import(job, "sums", Mapping("=1+1", "answer"), "")
    run(job)
    table = browser.get(reverse("datasets:import_errors", args=[job.pk])).content.decode()
    assert table.splitlines()[1].startswith("3,'=1+1,empty,")
