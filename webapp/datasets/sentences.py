"""Sentences about files and rows: kept in English, read in the language of whoever reads them.

A worker judges a file and the database keeps what is wrong; people who read it later may speak
another language, and programs get English. So a `Sentence` remembers the marked text that it was
made of and the values in it, and both are kept beside the English.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext


class Sentence(str):
    """English, made of a text that is marked with `gettext_noop` and the values in its places."""

    text: str
    values: dict[str, str | int]

    def __new__(cls, text: str, **values: str | int) -> Sentence:
        made = super().__new__(cls, text % values)
        made.text, made.values = text, values
        return made


def parts_of(sentence: str) -> dict[str, Any]:
    """What must be kept beside a sentence to read it in another language; empty for plain text."""
    if not isinstance(sentence, Sentence):
        return {}
    values = {
        name: parts_of(value) if isinstance(value, Sentence) else value
        for name, value in sentence.values.items()
    }
    return {"text": sentence.text, "values": values}


def in_own_language(sentence: str, parts: Mapping[str, Any] | None = None) -> str:
    """The sentence for who reads it now; as it stands where nobody kept its parts."""
    parts = parts_of(sentence) if parts is None else parts
    if not parts:
        return str(sentence)
    values = {
        name: in_own_language("", value) if isinstance(value, Mapping) else value
        for name, value in parts["values"].items()
    }
    return gettext(parts["text"]) % values
