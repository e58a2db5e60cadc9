"""Validation errors as sentences at fields: one table for form, YAML, API and command line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError

from training_core.contract.spec import RunSpec


class FieldError(NamedTuple):
    """One thing that is wrong with a document."""

    path: str
    """Field in dotted form, such as `stages.0.optimiser.learning_rate`; empty for the whole."""
    message: str
    """What is wrong and what would be right."""


def field_errors(error: ValidationError) -> list[FieldError]:
    """Turn pydantic's errors into sentences at dotted paths.

    The member names of discriminated unions are left out of a path, and a tuple's "too short" that
    only follows from a bad item is dropped.
    """
    found = [(_path(item["loc"]), item) for item in error.errors(include_url=False)]
    paths = [path for path, _ in found]
    return [
        FieldError(path, _sentence(item))
        for path, item in found
        if not (
            item["type"] == "too_short" and any(other.startswith(f"{path}.") for other in paths)
        )
    ]


_UNION_MEMBERS = frozenset(
    {"reasoning_gym", "dataset", "correctness", "format", "length", "weighted_sum", "sft", "rl"}
)
_UNION_FIELDS = frozenset({"domains", "stages"})


def _path(loc: Iterable[int | str]) -> str:
    """Dotted path without the union member that pydantic puts after an index or a node."""
    parts: list[str] = []
    for part in loc:
        previous = parts[-1] if parts else ""
        after_union = previous in {"root", "node"} or (
            previous.isdecimal() and len(parts) > 1 and parts[-2] in _UNION_FIELDS
        )
        if isinstance(part, str) and part in _UNION_MEMBERS and after_union:
            continue
        parts.append(str(part))
    return ".".join(parts)


_SENTENCES = {
    "missing": "This field is required.",
    "greater_than_equal": "Must be at least {ge:g}; got {value}.",
    "greater_than": "Must be above {gt:g}; got {value}.",
    "less_than_equal": "Must be at most {le:g}; got {value}.",
    "less_than": "Must be below {lt:g}; got {value}.",
    "literal_error": "Must be one of {expected}; got {value}.",
    "union_tag_invalid": "The type must be one of {expected_tags}; got {tag!r}.",
    "union_tag_not_found": "The field 'type' is required here.",
    "int_parsing": "Must be a whole number; got {value}.",
    "int_type": "Must be a whole number; got {value}.",
    "int_from_float": "Must be a whole number; got {value}.",
    "float_parsing": "Must be a number; got {value}.",
    "float_type": "Must be a number; got {value}.",
    "bool_parsing": "Must be true or false; got {value}.",
    "bool_type": "Must be true or false; got {value}.",
    "string_type": "Must be text; got {value}.",
    "finite_number": "Must be a finite number.",
    "string_too_short": "Must not be empty.",
    "string_too_long": "Must have at most {max_length:,} characters.",
    "string_pattern_mismatch": "{value} does not have the form {pattern}.",
    "too_short": "Needs at least {min_length} item.",
    "too_long": "Must have at most {max_length:,} items.",
}
"""pydantic's kind of error to a sentence over its context and the value that was given."""


def _sentence(item: Any) -> str:
    """One sentence for one pydantic error."""
    kind, context = item["type"], item.get("ctx", {})
    if kind == "extra_forbidden":
        return f"There is no field {item['loc'][-1]!r} here.{_nearest(item)}"
    if kind == "value_error":
        return _capital(str(context.get("error", item["msg"])))
    value = _shown(item.get("input"))
    template = _SENTENCES.get(kind)
    if template is None:
        return f"{_capital(item['msg'])[:-1]}; got {value}."
    return template.format(value=value, **context)


def _shown(value: object) -> str:
    """A value short enough for a sentence."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _capital(text: str) -> str:
    """First letter upper-case, full stop at the end."""
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def _nearest(item: Any) -> str:
    """A guess at the field that was meant."""
    names = {name for model in _models(RunSpec, set()) for name in model.model_fields}
    close = difflib.get_close_matches(str(item["loc"][-1]), sorted(names), n=1, cutoff=0.75)
    return f" Did you mean {close[0]!r}?" if close else ""


def _models(model: type[BaseModel], seen: set[type[BaseModel]]) -> set[type[BaseModel]]:
    """All models that a model's fields refer to."""
    if model in seen:
        return seen
    seen.add(model)
    pending: list[Any] = [field.annotation for field in model.model_fields.values()]
    while pending:
        annotation = pending.pop()
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            _models(annotation, seen)
        pending.extend(getattr(annotation, "__args__", ()))
    return seen
