"""What the two file readers have in common: rows, row errors, and lines with their byte offsets.

Used by `jsonl_rows`, `csv_rows` and `layout`. A row is only text and structure here; nothing is
ever guessed about types, so `004` stays `004` and `NA` stays `NA`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from django.utils.translation import gettext_noop as _

from webapp.datasets.sentences import Sentence, parts_of

MAX_LINE_BYTES = 32 * 1024 * 1024
UTF8_BOM = b"\xef\xbb\xbf"
LONGEST_MESSAGE = 300


class FileError(ValueError):
    """The whole file cannot be read; the message says why and what to do, and is never long."""

    def __init__(self, message: str) -> None:
        self.message = cut_text(message)
        super().__init__(self.message)


class Row(NamedTuple):
    """One row as it stands in the file."""

    number: int
    """Line in a JSONL file; row in a CSV file, where the header is row 1."""
    values: dict[str, Any]
    """Field name to value."""
    offset: int
    """Bytes read so far."""


class RowError(NamedTuple):
    """One thing that is wrong in one row."""

    row: int
    """Number of the row, counted as in `Row`."""
    column: str
    """Field it concerns; empty for the whole row."""
    code: str
    """Stable short name."""
    message: str
    """What is wrong, in a sentence."""

    def shortened(self) -> RowError:
        """The same without any long text: fit to be stored and shown."""
        return self._replace(column=cut_text(self.column), message=cut_text(self.message))

    def stored(self) -> dict[str, Any]:
        """As an import keeps it: with what it takes to say it in another language."""
        return {**self._asdict(), "parts": parts_of(self.message)}


class NumberText(str):
    """A JSON number as it was written, so that 5.0, 5 and 1e3 stay apart."""


class Line(NamedTuple):
    """One line of a file."""

    number: int
    """From 1."""
    content: bytes | None
    """Its bytes with the line end; None when it is longer than the limit."""
    offset: int
    """Bytes read up to and including it."""


def read_lines(path: Path) -> Iterator[Line]:
    """Lines of a file with a byte order mark taken off; memory holds one line at a time."""
    with path.open("rb") as file:
        number = offset = 0
        while content := file.readline(MAX_LINE_BYTES + 1):
            number += 1
            offset += len(content)
            if len(content) > MAX_LINE_BYTES and not content.endswith(b"\n"):
                offset += _skip_line(file)
                yield Line(number, None, offset)
                continue
            yield Line(number, content.removeprefix(UTF8_BOM) if number == 1 else content, offset)


def _skip_line(file: Any) -> int:
    """Read on to the end of the line; returns the bytes passed over."""
    skipped = 0
    while part := file.readline(MAX_LINE_BYTES):
        skipped += len(part)
        if part.endswith(b"\n"):
            break
    return skipped


def too_long(row: int) -> RowError:
    """The error of a line beyond the limit."""
    limit = MAX_LINE_BYTES // (1024 * 1024)
    message = Sentence(_("The line is longer than %(limit)s MiB."), limit=limit)
    return RowError(row, "", "line_too_long", message)


def cut_text(text: str) -> str:
    """An error's text, which may quote the file, at a length that can be stored and shown."""
    return text if len(text) <= LONGEST_MESSAGE else f"{text[: LONGEST_MESSAGE - 1]}…"


def text_fault(text: str) -> tuple[str, str] | None:
    """(code, sentence) when a text cannot be stored faithfully, else None."""
    if "\0" in text:
        return "nul", Sentence(_("The text holds a NUL character (\\u0000); take it out."))
    if not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):
        message = _("The text holds half of a surrogate pair, which is no character.")
        return "surrogate", Sentence(message)
    return None
