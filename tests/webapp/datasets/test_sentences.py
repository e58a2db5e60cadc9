"""What is wrong with a file is kept in English and said in the language of whoever reads it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import translation

from tests.webapp.datasets.files import BAD_FILES, BAD_ROWS, BadFile, BadRows, lines
from webapp.accounts.models import User
from webapp.datasets import dispatch, services
from webapp.datasets.layout import detect
from webapp.datasets.mapping import Mapping
from webapp.datasets.models import DatasetImport
from webapp.datasets.rows import FileError
from webapp.datasets.sentences import Sentence, in_own_language, parts_of


@pytest.fixture(autouse=True)
def no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "send_task", lambda *_: True)


def rejected(owner: User, content: bytes, name: str = "a.jsonl") -> DatasetImport:
    job = services.store_upload(owner, name, [content])
    services.start_import(job, "sums", Mapping("prompt", "answer"), "")
    services.run_import(job.pk)
    job.refresh_from_db()
    assert job.state == "rejected"
    return job


def is_chinese(text: str) -> bool:
    return any("\u4e00" <= char <= "\u9fff" for char in text) and text.endswith("。")


@pytest.mark.parametrize("case", BAD_ROWS, ids=lambda case: case.name)
def test_errors_of_rows_are_read_in_both_languages(case: BadRows, ada: User) -> None:
    job = rejected(ada, case.content, case.name)
    assert [error["message"] for error in job.row_errors] == [e["message"] for e in job.errors]
    assert job.verdict == job.message
    with translation.override("zh-hans"):
        assert is_chinese(job.verdict)
        assert all(is_chinese(error["message"]) for error in job.row_errors)


@pytest.mark.parametrize("case", BAD_FILES, ids=lambda case: case.name)
def test_errors_of_files_are_read_in_both_languages(case: BadFile, tmp_path: Path) -> None:
    path = tmp_path / case.name
    path.write_bytes(case.content)
    with pytest.raises(FileError) as caught:
        detect(path, case.name)
    assert in_own_language(caught.value.message) == str(caught.value)
    with translation.override("zh-hans"):
        assert is_chinese(in_own_language(caught.value.message))


def test_a_sentence_in_a_sentence_is_kept_whole() -> None:
    why = Sentence("The text holds a NUL character (\\u0000); take it out.")
    text = "The name of column %(position)s, %(name)s, cannot be stored. %(why)s"
    sentence = Sentence(text, position=3, name="'a'", why=why)
    assert sentence.endswith(
        "cannot be stored. The text holds a NUL character (\\u0000); take it out."
    )
    kept = json.loads(json.dumps(parts_of(sentence)))
    assert in_own_language(sentence, kept) == sentence
    with translation.override("zh-hans"):
        assert in_own_language(sentence, kept) == (
            "第 3 列的名称 'a' 无法存储。文本含有 NUL 字符（\\u0000）；请将其去掉。"
        )


def test_what_was_kept_without_parts_stays_as_it_is(ada: User) -> None:
    job = rejected(ada, lines({"prompt": "q"}))
    for error in job.errors:
        del error["parts"]
    job.message_parts = {}
    with translation.override("zh-hans"):
        assert job.row_errors[0]["message"] == "There is no 'answer' here."
        assert job.verdict.startswith("1 of 1 row is bad")


def test_pages_and_the_file_of_errors_speak_the_reader_s_language(
    browser: Client, ada: User
) -> None:
    job = rejected(ada, lines({"prompt": "q"}))
    browser.cookies["temper_language"] = "zh-hans"
    page = browser.get(reverse("datasets:import", args=[job.pk])).text
    assert "1 行中有 1 行有错误，因此未导入任何内容。" in page
    assert "此处没有 &#x27;answer&#x27;。" in page
    file = browser.get(reverse("datasets:import_errors", args=[job.pk])).content
    assert file.startswith(b"\xef\xbb\xbfrow,column,code,message")
    assert "1,answer,missing,此处没有 'answer'。" in file.decode()


def test_an_upload_is_refused_in_the_reader_s_language(browser: Client) -> None:
    browser.cookies["temper_language"] = "zh-hans"
    answer = browser.post(reverse("datasets:upload"), headers={"HX-Request": "true"})
    assert answer.json() == {"error": "请选择文件。"}
