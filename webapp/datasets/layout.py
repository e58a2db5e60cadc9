"""Find out what an uploaded file is, and read its rows. Called by the import and its preview.

Only the first bytes decide. A file that we do not read is refused with the way to make it one that
we do.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

from django.utils.translation import gettext_noop as _

from webapp.datasets.columns import check_columns
from webapp.datasets.csv_rows import read_csv, read_header
from webapp.datasets.jsonl_rows import read_jsonl
from webapp.datasets.rows import UTF8_BOM, FileError, Row, RowError
from webapp.datasets.sentences import Sentence

SNIFF_ROWS = 200
DELIMITERS = {",": _("comma"), ";": _("semicolon"), "\t": _("tab"), "|": _("bar")}
_MAGIC = (
    (b"\x1f\x8b", Sentence(_("It is gzip-compressed. Unpack it first: `gunzip FILE`."))),
    (b"PK\x03\x04", Sentence(_("It is a zip archive or a spreadsheet. Save the sheet as CSV."))),
    (
        b"PAR1",
        Sentence(_("It is Parquet. Convert it: `df.to_json(FILE, orient='records', lines=True)`.")),
    ),
    (b"\x28\xb5\x2f\xfd", Sentence(_("It is zstd-compressed. Unpack it first: `unzstd FILE`."))),
    (b"BZh", Sentence(_("It is bzip2-compressed. Unpack it first: `bunzip2 FILE`."))),
    (b"\xfd7zXZ", Sentence(_("It is xz-compressed. Unpack it first: `unxz FILE`."))),
    (b"\x89PNG", Sentence(_("It is an image, not a table. Choose a CSV or JSONL file."))),
    (b"\xff\xd8\xff", Sentence(_("It is an image, not a table. Choose a CSV or JSONL file."))),
    (b"GIF8", Sentence(_("It is an image, not a table. Choose a CSV or JSONL file."))),
    (b"%PDF", Sentence(_("It is a PDF, not a table. Choose a CSV or JSONL file."))),
    (b"\xff\xfe", Sentence(_("It is UTF-16. Save it as UTF-8: `iconv -f UTF-16 -t UTF-8`."))),
    (b"\xfe\xff", Sentence(_("It is UTF-16. Save it as UTF-8: `iconv -f UTF-16 -t UTF-8`."))),
)


class Layout(NamedTuple):
    """How a file is to be read."""

    format: Literal["jsonl", "csv"]
    """Kind of file."""
    delimiter: str
    """Between the cells of a CSV file; empty for JSONL."""
    columns: list[str]
    """Names that can be mapped; nested JSON fields in dotted form."""


def detect(path: Path, file_name: str, delimiter: str = "") -> Layout:
    """What the file is. Raises FileError when it is nothing that we read."""
    with path.open("rb") as file:
        head = file.read(64 * 1024)
    for magic, advice in _MAGIC:
        if head.startswith(magic):
            raise FileError(advice)
    start = head.removeprefix(UTF8_BOM).lstrip()
    if not start:
        raise FileError(Sentence(_("The file is empty.")))
    if start.startswith(b"[") and _is_json_array(start, file_name):
        text = _("It is one JSON list. Write one object a line: `jq -c '.[]' FILE > FILE.jsonl`.")
        raise FileError(Sentence(text))
    if _is_jsonl(start, file_name):
        return Layout("jsonl", "", _json_columns(path))
    if b"\r" in start and b"\n" not in start:
        text = _("Its lines end with carriage returns alone. Save it with line feeds.")
        raise FileError(Sentence(text))
    chosen = delimiter or _guess_delimiter(start, file_name)
    return Layout("csv", chosen, read_header(path, chosen))


def read_rows(path: Path, layout: Layout) -> Iterator[Row | RowError]:
    """Rows and errors of a file, in order."""
    if layout.format == "jsonl":
        return read_jsonl(path)
    return read_csv(path, layout.columns, layout.delimiter)


def look_up(values: dict[str, Any], column: str) -> Any:
    """The value of a column; `a.b` reaches into nested objects unless a key has that very name."""
    if column in values:
        return values[column]
    found: Any = values
    for part in column.split("."):
        if not isinstance(found, dict) or part not in found:
            return None
        found = found[part]
    return found


def _suffix(file_name: str) -> str:
    return Path(file_name).suffix.lower()


def _is_json_array(start: bytes, file_name: str) -> bool:
    """A list of objects, or anything in brackets that calls itself JSON."""
    return start[1:].lstrip()[:1] in {b"{", b"[", b"]"} or _suffix(file_name).startswith(".json")


def _is_jsonl(start: bytes, file_name: str) -> bool:
    """By its name, else by its first character."""
    suffix = _suffix(file_name)
    if suffix in {".csv", ".tsv"}:
        return False
    return start.startswith(b"{") or suffix in {".jsonl", ".ndjson", ".json"}


def _guess_delimiter(start: bytes, file_name: str) -> str:
    """The delimiter that stands most often in the first line."""
    if _suffix(file_name) == ".tsv":
        return "\t"
    first = start.split(b"\n", 1)[0].decode("utf-8", errors="replace")
    return max(DELIMITERS, key=first.count)


def _json_columns(path: Path) -> list[str]:
    """Field names of the first rows, in the order in which they appear."""
    found = check_columns(_first_names(path))
    if not found:
        text = _(
            "None of the first %(rows)s lines is a JSON object with fields. Expected lines such "
            "as %(example)s, or a CSV file with a header."
        )
        example = '{"prompt": "2 + 2", "answer": "4"}'
        raise FileError(Sentence(text, rows=SNIFF_ROWS, example=example))
    return found


def _first_names(path: Path) -> Iterator[str]:
    """The different field names of the first rows, as they come."""
    found: set[str] = set()
    for row in islice(read_jsonl(path), SNIFF_ROWS):
        for name in _names(row.values) if isinstance(row, Row) else ():
            if name not in found:
                found.add(name)
                yield name


def _names(values: dict[str, Any], prefix: str = "", depth: int = 0) -> Iterator[str]:
    """Dotted names of fields, two levels deep."""
    for key, value in values.items():
        if isinstance(value, dict) and value and depth < 2:
            yield from _names(value, f"{prefix}{key}.", depth + 1)
        else:
            yield f"{prefix}{key}"
