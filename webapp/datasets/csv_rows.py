"""Read CSV row by row with the standard library, strictly: every cell stays the text it is.

Called by `layout.read_rows`. Row numbers are those of a spreadsheet: the header is row 1 and a
cell may span lines. Text that is not UTF-8 is carried as surrogates up to the check of each cell,
so that the error names its column.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from django.utils.translation import gettext_noop as _

from webapp.datasets.columns import check_columns
from webapp.datasets.rows import MAX_LINE_BYTES, FileError, Row, RowError, read_lines, too_long
from webapp.datasets.sentences import Sentence

csv.field_size_limit(MAX_LINE_BYTES)


class _Lines:
    """Decoded lines for `csv.reader`, which remembers how far the file is read.

    A row may span lines, but not more bytes than one line may have: else a file of quoted line
    ends is one row, and all of it would be held in memory.
    """

    def __init__(self, path: Path) -> None:
        self._lines = read_lines(path)
        self.offset = self.row_start = 0
        self.cut = False

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        if self.offset - self.row_start > MAX_LINE_BYTES:
            raise csv.Error("row larger than limit")
        line = next(self._lines)
        self.offset = line.offset
        if line.content is None:
            self.cut = True
            return ""
        return line.content.decode("utf-8", errors="surrogateescape")


def read_header(path: Path, delimiter: str) -> list[str]:
    """Names of the columns. Raises FileError when they are unusable."""
    try:
        header = next(csv.reader(_Lines(path), delimiter=delimiter, strict=True), [])
    except csv.Error as error:
        text = _("The header (row 1) cannot be read: %(why)s")
        raise FileError(Sentence(text, why=_explain(error))) from error
    return check_columns(_names(header))


def _names(header: list[str]) -> Iterator[str]:
    """The header's cells as names, one after the other. Raises FileError."""
    for position, cell in enumerate(header, start=1):
        name = cell.strip()
        if not name:
            text = _("Column %(position)s has no name in the header (row 1).")
            raise FileError(Sentence(text, position=position))
        if not _is_clean(name):
            text = _("The name of column %(position)s (row 1) is not valid UTF-8.")
            raise FileError(Sentence(text, position=position))
        yield name


def read_csv(path: Path, columns: list[str], delimiter: str) -> Iterator[Row | RowError]:
    """Rows and errors in file order, the header left out; empty rows are skipped."""
    lines = _Lines(path)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    number = 0
    while True:
        number += 1
        lines.row_start = lines.offset
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield RowError(number, "", "bad_csv", _explain(error))
            continue
        if lines.cut:
            lines.cut = False
            yield too_long(number)
        elif number > 1 and cells:
            yield _row(number, columns, cells, lines.offset)


def _row(number: int, columns: list[str], cells: list[str], offset: int) -> Row | RowError:
    """Cells under their names, when there are as many as names and all are text."""
    if len(cells) != len(columns):
        one, many = (
            _("The row has %(cells)s cell, the header %(columns)s."),
            _("The row has %(cells)s cells, the header %(columns)s."),
        )
        text = one if len(cells) == 1 else many
        message = Sentence(text, cells=len(cells), columns=len(columns))
        return RowError(number, "", "ragged", message)
    for column, cell in zip(columns, cells, strict=True):
        if not _is_clean(cell):
            message = Sentence(_("The cell is not valid UTF-8."))
            return RowError(number, column, "bad_utf8", message)
    return Row(number, dict(zip(columns, cells, strict=True)), offset)


def _is_clean(text: str) -> bool:
    """Whether no byte was left undecoded."""
    return text.isascii() or not any("\udc80" <= char <= "\udcff" for char in text)


def _explain(error: csv.Error) -> str:
    """csv's terse words as a sentence."""
    text = str(error)
    limit = MAX_LINE_BYTES // (1024 * 1024)
    if "unexpected end of data" in text:
        return Sentence(_("A quoted cell is never closed: a quotation mark is missing."))
    if "expected after" in text:
        return Sentence(
            _('A quotation mark stands inside a quoted cell; double it ("") or take it out.')
        )
    if "row larger" in text:
        return Sentence(_("The row is longer than %(limit)s MiB."), limit=limit)
    if "field larger" in text:
        return Sentence(_("A cell is longer than %(limit)s MiB."), limit=limit)
    if "new-line character" in text:
        return Sentence(_("A carriage return stands inside a cell without quotation marks."))
    return f"{text[:1].upper()}{text[1:]}."
