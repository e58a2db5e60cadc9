"""Read JSONL: one JSON object a line, with the reason and the line number of whatever is wrong.

Called by `layout.read_rows`. Stricter than `json.loads`: NaN and Infinity, doubled keys and values
that are no object are errors.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from django.utils.translation import gettext_noop as _

from webapp.datasets.rows import NumberText, Row, RowError, read_lines, too_long
from webapp.datasets.sentences import Sentence

_OF_DECODER = frozenset(
    {
        _("Expecting value"),
        _("Expecting property name enclosed in double quotes"),
        _("Expecting ':' delimiter"),
        _("Expecting ',' delimiter"),
        _("Invalid control character at"),
        _("Unterminated string starting at"),
    }
)
"""What the decoder says most; the rest stays as it says it."""


class _Refused(ValueError):
    """Something that JSON allows or Python tolerates, and we do not."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


def read_jsonl(path: Path) -> Iterator[Row | RowError]:
    """Rows and errors in file order; blank lines are skipped."""
    for line in read_lines(path):
        if line.content is None:
            yield too_long(line.number)
            continue
        try:
            text = line.content.decode("utf-8").strip()
        except UnicodeDecodeError as error:
            text = _("Byte %(position)s of the line is not valid UTF-8.")
            message = Sentence(text, position=error.start + 1)
            yield RowError(line.number, "", "bad_utf8", message)
            continue
        if text:
            yield _parse(line.number, text, line.offset)


def _parse(number: int, text: str, offset: int) -> Row | RowError:
    """One line as a row."""
    try:
        value = _DECODER.decode(text)
    except _Refused as error:
        return RowError(number, "", error.code, error.message)
    except json.JSONDecodeError as error:
        return RowError(number, "", "bad_json", _explain(error))
    except RecursionError:
        return RowError(number, "", "too_deep", Sentence(_("The value is nested too deeply.")))
    if not isinstance(value, dict):
        expected = '{"prompt": ..., "answer": ...}'
        message = Sentence(_says_kind(value), expected=expected)
        return RowError(number, "", "not_an_object", message)
    return Row(number, value, offset)


def _explain(error: json.JSONDecodeError) -> str:
    """The decoder's words with the place, and a guess at what happened."""
    if error.msg == "Extra data":
        text = _("A second value begins at character %(position)s; write one object a line.")
        return Sentence(text, position=error.pos + 1)
    if error.pos >= len(error.doc):
        return Sentence(_("The line breaks off before the object ends."))
    text = _("Not JSON at character %(position)s: %(why)s.")
    why = Sentence(error.msg) if error.msg in _OF_DECODER else error.msg
    return Sentence(text, position=error.pos + 1, why=why)


def _no_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys differ."""
    found = dict(pairs)
    if len(found) < len(pairs):
        text = _("The key %(key)s stands twice.")
        raise _Refused("doubled_key", Sentence(text, key=repr(_doubled(pairs)[:80])))
    return found


def _doubled(pairs: list[tuple[str, Any]]) -> str:
    """The first key that stood before."""
    seen: set[str] = set()
    for key, _value in pairs:
        if key in seen:
            return key
        seen.add(key)
    raise AssertionError("All keys differ.")


def _no_constant(name: str) -> NoReturn:
    """NaN and Infinity are not JSON, though Python reads them."""
    text = _("%(name)s is not JSON; write null or a text.")
    raise _Refused("not_finite", Sentence(text, name=name))


_DECODER = json.JSONDecoder(
    object_pairs_hook=_no_doubles,
    parse_constant=_no_constant,
    parse_int=NumberText,
    parse_float=NumberText,
)


def _says_kind(value: object) -> str:
    """What to say of a JSON value that is no object."""
    words = {
        NumberText: _("The line is a number; expected an object such as %(expected)s."),
        list: _("The line is a list; expected an object such as %(expected)s."),
        str: _("The line is a text; expected an object such as %(expected)s."),
        bool: _("The line is true or false; expected an object such as %(expected)s."),
    }
    return words.get(type(value), _("The line is null; expected an object such as %(expected)s."))
