"""Values as text in a control and text as values of a document: the two directions of one table.

What would surprise: a text that is not a number stays the text it is, so that validation can name
what was typed.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from training_core.contract.yaml_text import YamlError, dump_yaml, parse_yaml
from webapp.ui.schema_form.kinds import FieldShape, Kind

_INTEGER = re.compile(r"[-+]?[0-9]{1,40}")
_NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]{1,4})?")


def to_text(shape: FieldShape, value: Any) -> str:
    """What a control shows for a value, valid or not."""
    if value is None:
        return ""
    if shape.kind is Kind.WORDS and isinstance(value, list | tuple):
        return ", ".join(str(item) for item in value)
    if shape.kind is Kind.SETTINGS and isinstance(value, dict):
        return settings_text(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return float_text(value)
    return value if isinstance(value, str) else str(value)


def to_value(shape: FieldShape, text: str) -> Any:
    """What a document holds for the text of a control."""
    text = text.replace("\r\n", "\n")
    if shape.kind in {Kind.TEXT, Kind.LONG_TEXT}:
        return None if shape.is_nullable and not text else text
    bare = text.strip()
    if shape.is_nullable and not bare:
        return None
    match shape.kind:
        case Kind.INTEGER | Kind.NUMBER:
            return _number(shape.kind, bare)
        case Kind.SWITCH:
            return {"true": True, "on": True, "false": False, "": False}.get(bare, bare)
        case Kind.CHOICE | Kind.CONSTANT:
            return next((option for option in shape.options if str(option) == bare), bare)
        case Kind.WORDS:
            return [word for word in re.split(r"[,\s]+", bare) if word]
        case Kind.SETTINGS:
            return _settings(text)
        case _:
            raise TypeError(f"{shape.name} is no scalar")


def settings_text(settings: dict[str, Any]) -> str:
    """One `name: value` a line, lists in brackets; in plain YAML where that would be ambiguous."""
    if not settings:
        return ""
    try:
        lines = [
            dump_yaml({name: value}, flow=True).strip()[1:-1] for name, value in settings.items()
        ]
        text = "\n".join(lines)
        if parse_yaml(text) == settings:
            return text
    except YamlError:
        pass
    return dump_yaml(settings)


def float_text(value: float) -> str:
    """The shortest text that gives the same number back: `1e-5`, `0.2`, `8`."""
    text = re.sub(r"e([+-])0+(?=\d)", r"e\1", repr(value)).replace("e+", "e")
    return text.removesuffix(".0")


def _number(kind: Kind, text: str) -> Any:
    """A number where the text is one."""
    if _INTEGER.fullmatch(text):
        return int(text)
    if _NUMBER.fullmatch(text):
        number = float(text)
        return int(number) if kind is Kind.INTEGER and number.is_integer() else number
    return text


def _settings(text: str) -> Any:
    """`key: value` lines as a mapping; text that is none stays text."""
    if not text.strip():
        return {}
    try:
        return parse_yaml(text)
    except (YamlError, yaml.YAMLError):
        return text
