"""The dataset pages: upload, columns, errors, records."""

from __future__ import annotations

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from tests.webapp.datasets.files import BAD_FILES, lines
from webapp.accounts.models import User
from webapp.datasets import dispatch, services
from webapp.datasets.mapping import Mapping
from webapp.datasets.models import DatasetImport

GOOD = lines(*({"question": f"What is {i} + {i}?", "answer": 2 * i} for i in range(40)))


@pytest.fixture(autouse=True)
def no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "send_task", lambda *_: True)


def post_file(browser: Client, content: bytes, name: str = "sums.jsonl", **headers: str):
    file = SimpleUploadedFile(name, content)
    return browser.post(reverse("datasets:upload"), {"file": file}, headers=headers or None)


def choose(browser: Client, job: DatasetImport, **changes: str):
    posted = {"name": "Sums", "prompt": "question", "answer": "answer", "held_out_percent": "20"}
    return browser.post(reverse("datasets:import", args=[job.pk]), posted | changes)


def imported(owner: User, name: str = "Sums") -> DatasetImport:
    job = services.store_upload(owner, "sums.jsonl", [GOOD])
    services.start_import(job, name, Mapping("question", "answer"), "")
    services.run_import(job.pk)
    job.refresh_from_db()
    return job


def test_an_empty_house_says_what_to_do(browser: Client) -> None:
    page = browser.get(reverse("datasets:index")).content.decode()
    assert "Train on your own prompts" in page
    assert reverse("datasets:upload") in page


def test_from_upload_to_a_version(browser: Client) -> None:
    answer = post_file(browser, GOOD)
    job = DatasetImport.objects.get()
    assert answer.headers["Location"] == reverse("datasets:import", args=[job.pk])
    page = browser.get(answer.headers["Location"]).content.decode()
    assert "<option selected>question</option>" in page
    assert page.count('class="record panel"') == 5
    assert choose(browser, job).status_code == 302
    waiting = browser.get(reverse("datasets:import", args=[job.pk])).content.decode()
    assert "Waits for a worker" in waiting
    services.run_import(job.pk)
    done = browser.get(reverse("datasets:import_progress", args=[job.pk])).content.decode()
    assert "40 records" in done
    assert "hx-get" not in done  # it stops asking
    listed = browser.get(reverse("datasets:index")).content.decode()
    assert "Sums" in listed


def test_a_script_gets_json(browser: Client) -> None:
    answer = post_file(browser, GOOD, **{"HX-Request": "true"})
    assert json.loads(answer.content)["next"].startswith("/datasets/imports/")
    refused = post_file(browser, b"PAR1", "a.parquet", **{"HX-Request": "true"})
    assert refused.status_code == 422
    assert "Parquet" in json.loads(refused.content)["error"]


@pytest.mark.parametrize("case", BAD_FILES, ids=lambda case: case.name)
def test_a_bad_file_is_refused_where_it_was_chosen(case, browser: Client) -> None:
    answer = post_file(browser, case.content, case.name)
    assert answer.status_code == 422
    assert not DatasetImport.objects.exists()


def test_no_file_at_all(browser: Client) -> None:
    answer = browser.post(reverse("datasets:upload"))
    assert answer.status_code == 422
    assert "Choose a file." in answer.content.decode()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("name", "x" * 121),
        ("name", "nul\0"),
        ("prompt", ""),
        ("prompt", "nonsense"),
        ("answer", "question"),
        ("demonstration", "nonsense"),
        ("held_out_percent", "0"),
        ("held_out_percent", "51"),
        ("held_out_percent", "many"),
        ("held_out_percent", "²"),
    ],
)
def test_a_bad_choice_is_named_at_its_field(field: str, value: str, browser: Client) -> None:
    post_file(browser, GOOD)
    job = DatasetImport.objects.get()
    answer = choose(browser, job, **{field: value})
    assert answer.status_code == 422
    assert 'aria-invalid="true"' in answer.content.decode() or field == "demonstration"
    job.refresh_from_db()
    assert job.state == "uploaded"


def test_the_preview_shows_bad_rows(browser: Client) -> None:
    post_file(browser, lines({"question": "q", "answer": ""}) + GOOD)
    page = browser.get(reverse("datasets:import", args=[DatasetImport.objects.get().pk]))
    assert "Row 1" in page.content.decode()


def test_errors_are_listed_and_downloaded(browser: Client, ada: User) -> None:
    job = services.store_upload(ada, "a.jsonl", [lines({"question": "<b>q</b>"}) + GOOD])
    services.start_import(job, "Bad", Mapping("question", "answer"), "")
    services.run_import(job.pk)
    page = browser.get(reverse("datasets:import", args=[job.pk])).content.decode()
    assert "1 of 41 rows is bad, so nothing was imported" in page
    table = browser.get(reverse("datasets:import_errors", args=[job.pk])).content.decode()
    assert table.splitlines()[1] == "1,answer,missing,There is no 'answer' here."
    again = browser.get(reverse("datasets:import", args=[job.pk]) + "?columns=1")
    assert "Choose the columns" in again.content.decode()


def test_records_are_paged_filtered_and_searched(browser: Client, ada: User) -> None:
    version = imported(ada).version
    assert version is not None
    address = reverse("datasets:detail", args=[version.dataset.pk])
    first = browser.get(address).content.decode()
    assert first.count('class="record panel"') == 25
    assert "from=25" in first
    rest = browser.get(f"{address}?from=25").content.decode()
    assert rest.count('class="record panel"') == 15
    held = browser.get(f"{address}?split=held_out").content.decode()
    assert held.count('class="record panel"') == version.held_out_count
    found = browser.get(f"{address}?q=What is 7 ").content.decode()
    assert found.count('class="record panel"') == 1
    none = browser.get(f"{address}?q=zebra").content.decode()
    assert "No record fits" in none


@pytest.mark.parametrize("query", ["?version=9", "?version=x", "?from=-1", "?from=1e9"])
def test_addresses_that_mean_nothing(query: str, browser: Client, ada: User) -> None:
    version = imported(ada).version
    assert version is not None
    address = reverse("datasets:detail", args=[version.dataset.pk])
    assert browser.get(address + query).status_code == 404


def test_nobody_adds_versions_to_somebody_elses_dataset(browser: Client, bob: User) -> None:
    imported(bob, "Bobs")
    post_file(browser, GOOD)
    job = DatasetImport.objects.get(state="uploaded")
    answer = choose(browser, job, name="Bobs")
    assert "Somebody else owns" in answer.content.decode()


def test_hostile_names_and_texts_are_escaped(browser: Client, ada: User) -> None:
    hostile = "<img src=x onerror=1> {{ 7*7 }} 奖励"
    rows = lines(*({"question": f"{hostile}{i}", "answer": hostile} for i in range(5)))
    job = services.store_upload(ada, f"{hostile}.jsonl", [rows])
    services.start_import(job, hostile, Mapping("question", "answer"), "")
    services.run_import(job.pk)
    job.refresh_from_db()
    assert job.version is not None
    for address in (
        reverse("datasets:index"),
        reverse("datasets:detail", args=[job.version.dataset.pk]),
        reverse("datasets:import", args=[job.pk]),
    ):
        page = browser.get(address).content.decode()
        assert "<img src=x" not in page
        assert "&lt;img src=x" in page
        assert "{{ 7*7 }}" in page


def test_a_dataset_opens_the_launch_form(browser: Client, ada: User) -> None:
    version = imported(ada).version
    assert version is not None
    page = browser.get(f"{reverse('runs:launch')}?dataset={version.pk}").content.decode()
    assert f'<option value="{version.pk}" selected>' in page
    assert "dataset/sums" in page
    assert browser.get(f"{reverse('runs:launch')}?dataset=nonsense").status_code == 404


def test_a_file_that_is_only_a_header_says_so(browser: Client, ada: User) -> None:
    job = services.store_upload(ada, "head.csv", [b"prompt,answer\n"])
    page = browser.get(f"/datasets/imports/{job.pk}/").content.decode()
    assert "The file has a header but no rows." in page
    assert "Choose the columns of the prompt" not in page
