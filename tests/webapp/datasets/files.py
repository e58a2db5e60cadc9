"""A corpus of uploads that other importers get wrong, with what is right for each.

`BAD_FILES`: the whole file is refused, with words that say what to do. `BAD_ROWS`: the exact row,
column and code of each error. `GOOD_FILES`: prompts and answers exactly as they stand in the file.
"""

from __future__ import annotations

import gzip
import json
from typing import NamedTuple

FILLER = [{"prompt": f"q{i}", "answer": f"a{i}"} for i in range(4)]


class BadFile(NamedTuple):
    """A file that is no dataset."""

    name: str
    content: bytes
    says: str
    """Words of the refusal."""


class BadRows(NamedTuple):
    """A file of which some rows are wrong."""

    name: str
    content: bytes
    errors: list[tuple[int, str, str]]
    """(row, column, code) of every error, in order."""


class GoodFile(NamedTuple):
    """A file that is right, however odd it looks."""

    name: str
    content: bytes
    records: list[tuple[str, str]]
    """(last turn of the prompt, answer) in order."""


def lines(*rows: object) -> bytes:
    """JSONL; texts are lines as they are."""
    texts = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    return "".join(f"{text}\n" for text in texts).encode()


BAD_FILES = [
    BadFile("empty.jsonl", b"", "empty"),
    BadFile("blank.csv", b" \n\n\t\n", "empty"),
    BadFile("only-bom.csv", b"\xef\xbb\xbf", "empty"),
    BadFile("packed.jsonl.gz", gzip.compress(lines(*FILLER)), "gunzip"),
    BadFile("picture.csv", b"\x89PNG\r\n\x1a\n" + bytes(64), "It is an image"),
    BadFile("paper.csv", b"%PDF-1.7\n%\xe2\xe3\n", "It is a PDF"),
    BadFile("really-gzip.jsonl", gzip.compress(lines(*FILLER)), "gunzip"),
    BadFile("sheet.xlsx", b"PK\x03\x04rest", "spreadsheet"),
    BadFile("table.parquet", b"PAR1rest", "Parquet"),
    BadFile("wide.csv", "question,answer\n1,2\n".encode("utf-16"), "UTF-16"),
    BadFile("list.json", json.dumps(FILLER).encode(), "one JSON list"),
    BadFile("list.jsonl", b"[1, 2, 3]\n", "one JSON list"),
    BadFile("numbers.jsonl", b"1\n2\n", "None of the first"),
    BadFile("mac.csv", b"question,answer\r1,2\r", "carriage returns"),
    BadFile("twice.csv", b"prompt,answer,prompt\n1,2,3\n", "Two columns are named 'prompt'"),
    BadFile("unnamed.csv", b"prompt,,answer\n1,2,3\n", "Column 2 has no name"),
    BadFile("latin-header.csv", "prompt,r\xe9ponse\n1,2\n".encode("latin-1"), "column 2"),
    BadFile("torn-header.csv", b'"prompt,answer\n1,2\n', "header"),
]

BAD_ROWS = [
    BadRows(
        "structure.jsonl",
        lines(
            *FILLER,
            '{"prompt": "torn", "answ',
            "",
            '{"prompt": "a", "answer": "1"} {"prompt": "b", "answer": "2"}',
            "[1, 2]",
            '{"prompt": "x", "answer": NaN}',
            '{"prompt": "x", "answer": -Infinity}',
            '{"prompt": "x", "prompt": "y", "answer": "1"}',
            '{"prompt": "x", "answer": "1", "meta": {"k": 1, "k": 2}}',
            '{"prompt": "x",}',
            "[" * 60_000,
        ),
        [
            (5, "", "bad_json"),
            (7, "", "bad_json"),
            (8, "", "not_an_object"),
            (9, "", "not_finite"),
            (10, "", "not_finite"),
            (11, "", "doubled_key"),
            (12, "", "doubled_key"),
            (13, "", "bad_json"),
            (14, "", "too_deep"),
        ],
    ),
    BadRows(
        "values.jsonl",
        lines(
            *FILLER,
            {"answer": "1"},
            {"prompt": "x", "answer": None},
            {"prompt": "x", "answer": ["1"]},
            {"prompt": "x", "answer": {"value": 1}},
            {"prompt": "x", "answer": True},
            {"prompt": "  \n", "answer": ""},
            {"prompt": "nul \0", "answer": "1"},
            '{"prompt": "half \\ud800", "answer": "1"}',
            {"prompt": 5, "answer": "1"},
        ),
        [
            (5, "prompt", "missing"),
            (6, "answer", "missing"),
            (7, "answer", "wrong_type"),
            (8, "answer", "wrong_type"),
            (9, "answer", "wrong_type"),
            (10, "prompt", "empty"),
            (10, "answer", "empty"),
            (11, "prompt", "nul"),
            (12, "prompt", "surrogate"),
        ],
    ),
    BadRows(
        "turns.jsonl",
        lines(
            *FILLER,
            {"prompt": [], "answer": "1"},
            {"prompt": [{"role": "user"}], "answer": "1"},
            {"prompt": [{"role": "wizard", "content": "x"}], "answer": "1"},
            {"prompt": ["x"], "answer": "1"},
            {"prompt": [{"role": "assistant", "content": "x"}], "answer": "1"},
            {"prompt": [{"role": "user", "content": 5}], "answer": "1"},
        ),
        [
            (5, "prompt", "last_turn"),
            (6, "prompt.0", "bad_turn"),
            (7, "prompt.0", "bad_turn"),
            (8, "prompt.0", "bad_turn"),
            (9, "prompt", "last_turn"),
            (10, "prompt.0", "bad_turn"),
        ],
    ),
    BadRows(
        "encoding.jsonl",
        lines(*FILLER) + b'{"prompt": "caf\xe9", "answer": "1"}\n' + b'{"prompt": "\xff"}\n',
        [(5, "", "bad_utf8"), (6, "", "bad_utf8")],
    ),
    BadRows(
        "ragged.csv",
        b"prompt,answer\nq0,a0\nq1\n\nq2,a2,more\nq3,a3\nq4,\n,a5\nq6,a6\n",
        [(3, "", "ragged"), (5, "", "ragged"), (7, "answer", "empty"), (8, "prompt", "empty")],
    ),
    BadRows(
        "quotes.csv",
        b'prompt,answer\n"two\nlines",a0\n"q1" x,a1\nq2,a2\n"never closed,a3\nq4,a4\n',
        [(3, "", "bad_csv"), (5, "", "bad_csv")],
    ),
    BadRows(
        "bytes.csv",
        b"prompt,answer\nq0,a0\nq1,caf\xe9\n\xff,a2\nq3,a\0b\nq4,a4\n",
        [(3, "answer", "bad_utf8"), (4, "prompt", "bad_utf8"), (5, "answer", "nul")],
    ),
]

GOOD_FILES = [
    GoodFile(
        "words.csv",
        b"prompt,answer,level\r\nq0,004,1\r\nq1,NA,\r\nq2,null,2\r\nq3,None,3\r\nq4,-0.2253,4\r\n"
        b"q5,1e3,5\r\nq6,TRUE,6\r\nq7, padded ,7\r\n",
        [
            ("q0", "004"),
            ("q1", "NA"),
            ("q2", "null"),
            ("q3", "None"),
            ("q4", "-0.2253"),
            ("q5", "1e3"),
            ("q6", "TRUE"),
            ("q7", " padded "),
        ],
    ),
    GoodFile(
        "bom.csv",
        b"\xef\xbb\xbfprompt,answer\nq0,a0\nq1,a1\nq2,a2\nq3,a3",
        [("q0", "a0"), ("q1", "a1"), ("q2", "a2"), ("q3", "a3")],
    ),
    GoodFile(
        "cells.csv",
        b'prompt,answer\n"a ""quoted"" word, and a comma","1,000"\n"two\nlines",2\n"\xc3\xa9",3\n'
        b"=cmd(),4\n",
        [
            ('a "quoted" word, and a comma', "1,000"),
            ("two\nlines", "2"),
            ("é", "3"),
            ("=cmd()", "4"),
        ],
    ),
    GoodFile(
        "semicolons.csv",
        b"prompt;answer\nq0, with a comma;1,5\nq1;2\nq2;3\nq3;4\n",
        [("q0, with a comma", "1,5"), ("q1", "2"), ("q2", "3"), ("q3", "4")],
    ),
    GoodFile(
        "tabs.tsv",
        b"prompt\tanswer\nq0\t1\nq1\t2\nq2\t3\nq3\t4\n",
        [("q0", "1"), ("q1", "2"), ("q2", "3"), ("q3", "4")],
    ),
    GoodFile(
        "numbers.jsonl",
        b'{"prompt": "q0", "answer": 5}\n{"prompt": "q1", "answer": 5.0}\r\n'
        b'{"prompt": "q2", "answer": "5"}\n\n{"prompt": "q3", "answer": 1e400}\n'
        b'{"prompt": "q4", "answer": 123456789012345678901234567890}',
        [
            ("q0", "5"),
            ("q1", "5.0"),
            ("q2", "5"),
            ("q3", "1e400"),
            ("q4", "123456789012345678901234567890"),
        ],
    ),
    GoodFile(
        "chat.jsonl",
        lines(
            *FILLER,
            {
                "prompt": [
                    {"role": "system", "content": "Be brief."},
                    {"role": "user", "content": "héllo 奖励 👩‍👩‍👧", "name": "x"},
                ],
                "answer": "{{ 7*7 }} <b>x</b>",
            },
        ),
        [(f"q{i}", f"a{i}") for i in range(4)] + [("héllo 奖励 👩‍👩‍👧", "{{ 7*7 }} <b>x</b>")],
    ),
    GoodFile(
        "lines.json",
        lines(*FILLER),
        [(f"q{i}", f"a{i}") for i in range(4)],
    ),
]
