"""Read a trainer's console log by byte offset. Called by the logs tab and the API.

The file only grows. A piece ends at a line end where there is one, so that no character and no
line is torn, and the next piece begins at the offset that came with it.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from django.utils.safestring import SafeString

from webapp.ui.ansi import ansi_to_html, strip_ansi

TAIL_BYTES = 64 * 1024
PIECE_BYTES = 256 * 1024
MOST_HITS = 500
LONGEST_LINE = 2000


class Piece(NamedTuple):
    """A part of the log."""

    html: SafeString
    """Safe HTML."""
    start: int
    """Byte where it begins."""
    end: int
    """Byte where the next piece begins."""
    size: int
    """Bytes of the file now."""


class TextPiece(NamedTuple):
    """The same as text, with the colour codes of a terminal."""

    text: str
    start: int
    end: int
    size: int


class Hit(NamedTuple):
    """A line that holds what was searched."""

    number: int
    """From 1."""
    html: SafeString


def read_tail(path: Path) -> Piece:
    """The end of the log."""
    size = _size(path)
    start = max(0, size - TAIL_BYTES)
    return _read(path, start, TAIL_BYTES, size, skip_torn_line=start > 0)


def read_from(path: Path, offset: int) -> Piece:
    """What follows after an offset; an offset beyond the end starts again from the tail."""
    size = _size(path)
    if not 0 <= offset <= size:
        return read_tail(path)
    return _read(path, offset, PIECE_BYTES, size, skip_torn_line=False)


def read_text_from(path: Path, offset: int) -> TextPiece:
    """What follows after an offset, for programs; nothing beyond the end."""
    size = _size(path)
    start, content = _read_bytes(path, min(offset, size), PIECE_BYTES, skip_torn_line=False)
    text = content.decode("utf-8", errors="replace")
    return TextPiece(text, start, start + len(content), size)


def search(path: Path, words: str) -> tuple[list[Hit], int]:
    """(first hits, lines that hold the words), ignoring case and colours."""
    hits: list[Hit] = []
    count = 0
    wanted = words.casefold()
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                text = line[:LONGEST_LINE].decode("utf-8", errors="replace").rstrip("\n")
                if wanted in strip_ansi(text).casefold():
                    count += 1
                    if len(hits) < MOST_HITS:
                        hits.append(Hit(number, ansi_to_html(text)))
    except OSError:
        return [], 0
    return hits, count


def _size(path: Path) -> int:
    """Bytes of the file; 0 when there is none yet."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _read(path: Path, start: int, most: int, size: int, *, skip_torn_line: bool) -> Piece:
    """One piece."""
    start, content = _read_bytes(path, start, most, skip_torn_line=skip_torn_line)
    text = content.decode("utf-8", errors="replace")
    return Piece(ansi_to_html(text), start, start + len(content), size)


def _read_bytes(path: Path, start: int, most: int, *, skip_torn_line: bool) -> tuple[int, bytes]:
    """(where it begins, whole lines); nothing of a file that cannot be read."""
    try:
        with path.open("rb") as file:
            file.seek(start)
            content = file.read(most)
    except OSError:
        return start, b""
    if skip_torn_line and b"\n" in content:
        torn = content.index(b"\n") + 1
        start, content = start + torn, content[torn:]
    whole = content.rfind(b"\n") + 1
    if 0 < whole < len(content):
        content = content[:whole]
    elif whole == 0 and len(content) < most and content:
        content = b""  # an unfinished line: it comes with its end
    return start, content
