"""Validation errors as sentences at fields: one table for form, YAML, API and command line."""

from __future__ import annotations

import difflib
import re
import reprlib
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import islice
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError

from training_core.contract.spec import RunSpec
from training_core.contract.strict import SpecFault

MOST_ERRORS = 200
"""More are read by nobody, and a page of a hundred thousand helps nobody."""
LONGEST_TYPO = 60


class FieldError(NamedTuple):
    """One thing that is wrong with a document."""

    path: str
    """Field in dotted form, such as `stages.0.optimiser.learning_rate`; empty for the whole."""
    message: str
    """What is wrong and what would be right."""


def field_errors(error: ValidationError, say: Callable[[str], str] = str) -> list[FieldError]:
    """Turn pydantic's errors into sentences at dotted paths.

    The member names of discriminated unions are left out of a path, and a tuple's "too short" that
    only follows from a bad item is dropped. `say` puts a sentence, still without its values, into
    the reader's language.
    """
    return sentences_at_fields(error.errors(include_url=False), say)


def sentences_at_fields(items: Iterable[Any], say: Callable[[str], str] = str) -> list[FieldError]:
    """The same for the entries of pydantic's `ValidationError.errors()`."""
    found = [(_path(item), item) for item in items]
    above = {place for path, _ in found for place in _places_above(path)}
    sentences = (
        _error(path, item, say)
        for path, item in found
        if not (item["type"] == "too_short" and path in above)
    )
    return list(islice(sentences, MOST_ERRORS))


def _error(path: str, item: Any, say: Callable[[str], str]) -> FieldError:
    """One error at the field that it is about."""
    fault = item.get("ctx", {}).get("error")
    if isinstance(fault, SpecFault):
        place = ".".join(filter(None, (path, fault.at)))
        return FieldError(place, say(_capital(fault.words)).format(**fault.values))
    return _located(path, _sentence(item, say), say)


def _places_above(path: str) -> Iterator[str]:
    """`a.b` and `a` for `a.b.c`."""
    while path := path.rpartition(".")[0]:
        yield path


_LOCATED = re.compile(r"([A-Za-z][a-z0-9_]*(?:\.[a-z0-9_]+)*): (.+)", re.DOTALL)


def _located(path: str, sentence: str, say: Callable[[str], str]) -> FieldError:
    """The error at the field that its sentence begins with, as validators of whole models write it.

    `evaluation.max_new_tokens: must be ...` at the path of the model is an error of that field.
    """
    match = _LOCATED.fullmatch(sentence)
    if match is None:
        return FieldError(path, say(sentence))
    field = match[1][:1].lower() + match[1][1:]
    return FieldError(f"{path}.{field}" if path else field, say(_capital(match[2])))


def _path(item: Any) -> str:
    """Dotted path without the union member that pydantic puts after an index or a node."""
    parts: list[str] = []
    unions = _unions()
    for part in item["loc"]:
        place = parts[-2:] if parts and parts[-1].isdecimal() else parts[-1:]
        is_member = bool(place) and part in unions.get(place[0], ())
        if not is_member:
            parts.append(str(part))
    if item["type"] in {"union_tag_invalid", "union_tag_not_found"}:
        parts.append("type")
    return ".".join(parts)


@cache
def _unions() -> dict[str, frozenset[str]]:
    """Each field of a spec that holds a union, or a list of one, to the names of its members."""
    found: dict[str, frozenset[str]] = {}
    for model in models_of(RunSpec, set()):
        for name, field in model.model_fields.items():
            tags = frozenset(
                member.model_fields["type"].default
                for member in _models_in(field.annotation)
                if "type" in member.model_fields
            )
            if len(tags) > 1:
                found[name] = found.get(name, frozenset()) | tags
    return found


_SENTENCES = {
    "missing": "This field is required.",
    "greater_than_equal": "Must be at least {ge}; got {value}.",
    "greater_than": "Must be above {gt}; got {value}.",
    "less_than_equal": "Must be at most {le}; got {value}.",
    "less_than": "Must be below {lt}; got {value}.",
    "literal_error": "Must be one of {expected}; got {value}.",
    "union_tag_invalid": "Must be one of {expected_tags}; got {tag!r}.",
    "union_tag_not_found": "This field is required.",
    "int_parsing": "Must be a whole number; got {value}.",
    "int_type": "Must be a whole number; got {value}.",
    "int_from_float": "Must be a whole number; got {value}.",
    "float_parsing": "Must be a number; got {value}.",
    "float_type": "Must be a number; got {value}.",
    "bool_parsing": "Must be true or false; got {value}.",
    "bool_type": "Must be true or false; got {value}.",
    "string_type": "Must be text; got {value}.",
    "finite_number": "Must be a finite number.",
    "string_unicode": "Must be text without half surrogate pairs; got {value}.",
    "tuple_type": "Must be a list; got {value}.",
    "list_type": "Must be a list; got {value}.",
    "dict_type": "Must be a group of named values; got {value}.",
    "model_type": "Must be a group of fields; got {value}.",
    "model_attributes_type": "Must be a group of fields; got {value}.",
    "string_too_short": "Must not be empty.",
    "string_too_long": "Must have at most {max_length} characters.",
    "string_pattern_mismatch": "Must be {form}; got {value}.",
    "too_short": "Needs at least {min_length} item.",
    "too_long": "Must have at most {max_length} items.",
}
"""pydantic's kind of error to a sentence over its context and the value that was given."""
PATTERN_WORDS = {
    r"^[a-z][a-z0-9_]*$": "lower-case letters, digits and _, beginning with a letter",
    r"^[a-z][a-z0-9_]*$|^$": "lower-case letters, digits and _, beginning with a letter, or empty",
    r"^[a-z][a-z0-9_\-]*$": "lower-case letters, digits, _ and -, beginning with a letter",
    r"^[a-z0-9][a-z0-9_\-]*$": "lower-case letters, digits, _ and -, not beginning with _ or -",
    r"^[a-z0-9][a-z0-9_\-]*(/[a-z0-9_\-]+)*$": "lower-case letters, digits, _ and -, with / between"
    " the parts, such as math/add",
}
"""Each pattern of a spec's fields to what people read instead of it."""


def message_of(text: str) -> str:
    """What a validator's sentence says, without the field that it may begin with."""
    return _located("", _capital(text), str).message


UNKNOWN = "There is no field {name} here."
MEANT = "Did you mean {name}?"


def sentences() -> Iterator[str]:
    """Every sentence of this table, for who translates them."""
    yield from _SENTENCES.values()
    yield from PATTERN_WORDS.values()
    yield from (UNKNOWN, MEANT)


def _sentence(item: Any, say: Callable[[str], str]) -> str:
    """One sentence for one pydantic error."""
    kind = item["type"]
    context = {name: _plain(value) for name, value in item.get("ctx", {}).items()}
    if kind == "extra_forbidden":
        close = _nearest(str(item["loc"][-1]))
        guess = " " + say(MEANT).format(name=repr(close)) if close else ""
        return say(UNKNOWN).format(name=repr(item["loc"][-1])) + guess
    if kind == "value_error":
        return _capital(str(context.get("error", item["msg"])))
    value = _shown(item.get("input"))
    context["form"] = say(PATTERN_WORDS.get(str(context.get("pattern")), "of another form"))
    template = _SENTENCES.get(kind)
    if template is None:
        return f"{_capital(item['msg'])[:-1]}; got {value}."
    return say(template).format(value=value, **context)


def _plain(value: object) -> object:
    """A bound as people write it: 1,000,000 instead of 1e+06."""
    if not isinstance(value, int | float):
        return value
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.0f}" if value.is_integer() else f"{value:g}"


def _shown(value: object) -> str:
    """A value short enough for a sentence, however large or deeply nested it is."""
    text = reprlib.repr(value) if isinstance(value, dict | list | tuple) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _capital(text: str) -> str:
    """First letter upper-case, full stop at the end."""
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def _nearest(name: str) -> str:
    """A guess at the field that was meant; empty without one, and for one in the wrong place."""
    if len(name) > LONGEST_TYPO or name in _field_names():
        return ""
    return next(iter(difflib.get_close_matches(name, _field_names(), n=1, cutoff=0.75)), "")


@cache
def _field_names() -> tuple[str, ...]:
    """Every field of every part of a spec."""
    names = {name for model in models_of(RunSpec, set()) for name in model.model_fields}
    return tuple(sorted(names))


def models_of(model: type[BaseModel], seen: set[type[BaseModel]]) -> set[type[BaseModel]]:
    """A model and all that its fields refer to, added to `seen`."""
    if model in seen:
        return seen
    seen.add(model)
    for field in model.model_fields.values():
        for inner in _models_in(field.annotation):
            models_of(inner, seen)
    return seen


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """Models that an annotation names, unions and lists opened."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in getattr(annotation, "__args__", ()):
        yield from _models_in(part)
