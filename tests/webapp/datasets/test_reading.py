"""Reading uploads: each file of the corpus, row by row, without a database."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.webapp.datasets.files import BAD_FILES, BAD_ROWS, GOOD_FILES, BadFile, BadRows, GoodFile
from training_core.contract.domains import DatasetRecord
from webapp.datasets import rows
from webapp.datasets.layout import detect, look_up, read_rows
from webapp.datasets.mapping import Mapping, guess_by_texts, guess_mapping, make_record
from webapp.datasets.rows import FileError, Row, RowError
from webapp.datasets.sides import Sides

PROMPT_ANSWER = Mapping("prompt", "answer")


def read(path: Path, name: str) -> tuple[list[DatasetRecord], list[RowError]]:
    records: list[DatasetRecord] = []
    errors: list[RowError] = []
    for item in read_rows(path, detect(path, name)):
        made = [item] if isinstance(item, RowError) else make_record(item, PROMPT_ANSWER)
        if isinstance(made, DatasetRecord):
            records.append(made)
        else:
            errors.extend(made)
    return records, errors


@pytest.fixture
def write(tmp_path: Path):
    def write(content: bytes) -> Path:
        path = tmp_path / "upload"
        path.write_bytes(content)
        return path

    return write


@pytest.mark.parametrize("case", BAD_FILES, ids=lambda case: case.name)
def test_a_file_that_is_no_dataset_says_what_to_do(case: BadFile, write) -> None:
    path = write(case.content)
    with pytest.raises(FileError, match=case.says):
        detect(path, case.name)


@pytest.mark.parametrize("case", BAD_ROWS, ids=lambda case: case.name)
def test_bad_rows_are_named(case: BadRows, write) -> None:
    _, errors = read(write(case.content), case.name)
    assert [(e.row, e.column, e.code) for e in errors] == case.errors
    assert all(e.message.endswith(".") and len(e.message) < 200 for e in errors)


@pytest.mark.parametrize("case", GOOD_FILES, ids=lambda case: case.name)
def test_good_files_are_read_to_the_letter(case: GoodFile, write) -> None:
    records, errors = read(write(case.content), case.name)
    assert errors == []
    assert [(r.messages[-1].content, r.answer) for r in records] == case.records


def test_a_line_of_ten_megabytes_is_read(write) -> None:
    long = "x" * 10_000_000
    records, errors = read(write(b'{"prompt": "%s", "answer": "1"}\n' % long.encode()), "a.jsonl")
    assert not errors
    assert records[0].messages[0].content == long


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", b'{"prompt": "%s"}\n{"prompt": "q", "answer": "1"}\n'),
        ("a.csv", b"prompt,answer\nx,%s\nq,1\n"),
    ],
)
def test_a_line_beyond_the_limit_is_one_error_and_the_rest_is_read(
    name: str, content: bytes, write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "MAX_LINE_BYTES", 1000)
    filler = b'{"prompt": "q0", "answer": "1"}\n' if name == "a.jsonl" else b""
    records, errors = read(write(filler + content % (b"y" * 5000)), name)
    assert [(e.row, e.code) for e in errors] == [(2, "line_too_long")]
    assert records[-1].messages[0].content == "q"


def test_the_guess_takes_the_fields_own_names() -> None:
    assert guess_mapping(["id", "Question", "ground_truth"])[:2] == ("Question", "ground_truth")
    assert guess_mapping(["prompt", "reward_model.ground_truth"])[1] == "reward_model.ground_truth"
    assert guess_mapping(["messages", "answer", "completion"])[:3] == (
        "messages",
        "answer",
        "completion",
    )
    assert guess_mapping(["a", "b"])[:2] == ("", "")


def test_nested_fields_are_reached_by_dots_unless_a_key_has_that_name() -> None:
    assert look_up({"a": {"b": 1}}, "a.b") == 1
    assert look_up({"a.b": 2, "a": {"b": 1}}, "a.b") == 2
    assert look_up({"a": 1}, "a.b") is None


def make_messages(text: str):
    record = make_record(rows.Row(1, {"prompt": text, "answer": "1"}, 0), PROMPT_ANSWER)
    assert isinstance(record, DatasetRecord)
    return record.messages


def sides_of(percent: int, count: int) -> Sides:
    sides = Sides(percent)
    for index in range(count):
        sides.see(make_messages(f"question {index}"))
    sides.settle()
    return sides


@pytest.mark.parametrize("percent", [1, 20, 50])
@pytest.mark.parametrize("count", [4, 5, 7, 30])
def test_neither_side_of_a_small_file_is_empty(percent: int, count: int) -> None:
    sides = sides_of(percent, count)
    held = [sides.side(make_messages(f"question {i}")) for i in range(count)]
    assert 2 <= held.count("held_out") <= count - 2


def test_a_large_file_is_split_by_the_share() -> None:
    sides = sides_of(20, 2000)
    held = sum(sides.side(make_messages(f"question {i}")) == "held_out" for i in range(2000))
    assert 330 < held < 470


def test_a_prompt_keeps_its_side_when_the_file_grows() -> None:
    small, large = sides_of(20, 100), sides_of(20, 1000)
    for index in range(100):
        messages = make_messages(f"question {index}")
        assert small.side(messages) == large.side(messages)


def test_the_same_record_has_the_same_id_everywhere() -> None:
    one = make_record(rows.Row(1, {"prompt": "q", "answer": "5"}, 0), PROMPT_ANSWER)
    two = make_record(rows.Row(9, {"prompt": "q", "answer": "5", "x": 1}, 0), PROMPT_ANSWER)
    other = make_record(rows.Row(1, {"prompt": "q", "answer": "5.0"}, 0), PROMPT_ANSWER)
    assert isinstance(one, DatasetRecord)
    assert isinstance(two, DatasetRecord)
    assert isinstance(other, DatasetRecord)
    assert one.record_id == two.record_id != other.record_id


def rows_of(**columns: list[str]) -> list[Row]:
    return [
        Row(number, dict(zip(columns, cells, strict=True)), 0)
        for number, cells in enumerate(zip(*columns.values(), strict=True))
    ]


def test_columns_without_telling_names_are_guessed_by_their_texts() -> None:
    rows = rows_of(nr=["7", "8", "9"], a=["yes", "no", "no"], b=["is it so?"] * 3, c=["x", "", "y"])
    nothing = Mapping("", "")
    assert guess_by_texts(nothing, ["nr", "a", "b", "c"], rows)[:2] == ("b", "a")
    half = Mapping("", "a")
    assert guess_by_texts(half, ["nr", "a", "b", "c"], rows)[:2] == ("b", "a")
    assert guess_by_texts(nothing, ["nr"], rows) == nothing
    assert guess_by_texts(nothing, ["a", "b"], []) == nothing
    named = Mapping("a", "b", "c")
    assert guess_by_texts(named, ["nr", "a", "b", "c"], rows) == named
