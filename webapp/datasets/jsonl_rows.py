"""Read JSONL: one JSON object a line, with the reason and the line number of whatever is wrong.

Called by `layout.read_rows`. Stricter than `json.loads`: NaN and Infinity, doubled keys and values
that are no object are errors.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from webapp.datasets.rows import NumberText, Row, RowError, read_lines, too_long


class _Refused(ValueError):
    """Something that JSON allows or Python tolerates, and we do not."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def read_jsonl(path: Path) -> Iterator[Row | RowError]:
    """Rows and errors in file order; blank lines are skipped."""
    for line in read_lines(path):
        if line.content is None:
            yield too_long(line.number)
            continue
        try:
            text = line.content.decode("utf-8").strip()
        except UnicodeDecodeError as error:
            message = f"Byte {error.start + 1} of the line is not valid UTF-8."
            yield RowError(line.number, "", "bad_utf8", message)
            continue
        if text:
            yield _parse(line.number, text, line.offset)


def _parse(number: int, text: str, offset: int) -> Row | RowError:
    """One line as a row."""
    try:
        value = _DECODER.decode(text)
    except _Refused as error:
        return RowError(number, "", error.code, str(error))
    except json.JSONDecodeError as error:
        return RowError(number, "", "bad_json", _explain(error))
    except RecursionError:
        return RowError(number, "", "too_deep", "The value is nested too deeply.")
    if not isinstance(value, dict):
        found = _kind(value)
        message = (
            f'The line is {found}; expected an object such as {{"prompt": ..., "answer": ...}}.'
        )
        return RowError(number, "", "not_an_object", message)
    return Row(number, value, offset)


def _explain(error: json.JSONDecodeError) -> str:
    """The decoder's words with the place, and a guess at what happened."""
    if error.msg == "Extra data":
        return f"A second value begins at character {error.pos + 1}; write one object a line."
    if error.pos >= len(error.doc):
        return "The line breaks off before the object ends."
    return f"Not JSON at character {error.pos + 1}: {error.msg}."


def _no_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys differ."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _Refused("doubled_key", f"The key {_doubled(pairs)[:80]!r} stands twice.")
    return found


def _doubled(pairs: list[tuple[str, Any]]) -> str:
    """The first key that stood before."""
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            return key
        seen.add(key)
    raise AssertionError("All keys differ.")


def _no_constant(name: str) -> NoReturn:
    """NaN and Infinity are not JSON, though Python reads them."""
    raise _Refused("not_finite", f"{name} is not JSON; write null or a text.")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_no_doubles,
    parse_constant=_no_constant,
    parse_int=NumberText,
    parse_float=NumberText,
)


def _kind(value: object) -> str:
    """A JSON value's kind in words."""
    if isinstance(value, NumberText):
        return "a number"
    words = {list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return words.get(type(value), "something else")
