"""Settings of a reasoning-gym generator: JSON values checked against its config dataclass.

Called by `domains.reasoning_gym` at launch and again in the trainer. The dataclass's annotations
give names and types, its `validate()` gives ranges; its messages become errors at `params.NAME`.
"""

from __future__ import annotations

import dataclasses
import difflib
import sys
import types
import typing
from collections.abc import Mapping
from typing import Any, Literal, Union

from training_core.contract.domains import GeneratorValue
from training_core.contract.field_errors import FieldError

RESERVED = frozenset({"seed", "size"})
MOST = sys.float_info.max


class ParamsRefused(ValueError):
    """Settings that the generator does not take."""

    def __init__(self, errors: list[FieldError]) -> None:
        super().__init__("; ".join(f"{error.path}: {error.message}" for error in errors))
        self.errors = errors


def build_config(
    config_class: type[Any], params: Mapping[str, GeneratorValue], seed: int, size: int
) -> Any:
    """The generator's config object. Raises ParamsRefused with every fault that can be seen."""
    fields = {item.name: item for item in dataclasses.fields(config_class)}
    hints = typing.get_type_hints(config_class)
    errors: list[FieldError] = []
    values: dict[str, Any] = {}
    for name, value in params.items():
        if name not in fields or name in RESERVED:
            errors.append(FieldError(f"params.{name}", _unknown(name, sorted(fields))))
            continue
        try:
            values[name] = coerce(value, hints[name])
        except TypeError as error:
            errors.append(FieldError(f"params.{name}", str(error)))
    if errors:
        raise ParamsRefused(errors)
    own = {name: value for name, value in (("seed", seed), ("size", size)) if name in fields}
    config = config_class(**values, **own)
    _check_ranges(config, values)
    return config


def coerce(value: GeneratorValue, hint: Any) -> Any:
    """The value as the annotation wants it. Raises TypeError with a sentence."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return list(value) if isinstance(value, tuple) else value
    if origin in (Union, types.UnionType):
        return _coerce_union(value, arguments)
    if origin is Literal:
        if value not in arguments:
            raise TypeError(f"Must be one of {', '.join(map(repr, arguments))}; got {value!r}.")
        return value
    container = origin or hint
    if container in (list, tuple, set):
        return _coerce_items(value, container, arguments)
    return _coerce_scalar(value, hint)


def _coerce_union(value: GeneratorValue, members: tuple[Any, ...]) -> Any:
    """The first member that takes the value."""
    reasons = []
    for member in members:
        if member is type(None):
            continue
        try:
            return coerce(value, member)
        except TypeError as error:
            reasons.append(str(error))
    raise TypeError(reasons[0] if reasons else "Must be left out.")


def _coerce_items(value: GeneratorValue, container: Any, arguments: tuple[Any, ...]) -> Any:
    """A JSON list as list, tuple or set."""
    if not isinstance(value, tuple):
        raise TypeError(f"Must be a list; got {value!r}.")
    fixed = container is tuple and arguments and arguments[-1] is not Ellipsis
    if fixed and len(arguments) != len(value):
        raise TypeError(f"Must be a list of {len(arguments)} values; got {len(value)}.")
    hints = arguments if fixed else [arguments[0] if arguments else Any] * len(value)
    return container(coerce(item, hint) for item, hint in zip(value, hints, strict=True))


def _coerce_scalar(value: GeneratorValue, hint: Any) -> Any:
    """A bool, whole number, number or text; a bool is no number and 2.0 is a whole number."""
    wanted = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
    if hint not in wanted:
        raise TypeError("Cannot be set here: the generator wants a structure of its own.")
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return _as_float(value)
    if hint is int and isinstance(value, float) and value.is_integer():
        return int(value)
    if not isinstance(value, hint) or (isinstance(value, bool) and hint is not bool):
        raise TypeError(f"Must be {wanted[hint]}; got {value!r}.")
    return value


def _as_float(value: int) -> float:
    """A whole number where a number is wanted. Raises TypeError when it is too large for one."""
    try:
        return float(value)
    except OverflowError:
        raise TypeError(f"Must be a number between -{MOST:g} and {MOST:g}.") from None


def _check_ranges(config: Any, values: Mapping[str, Any]) -> None:
    """Run the generator's own check and put its complaint at the setting that it names."""
    try:
        if callable(getattr(config, "validate", None)):
            config.validate()
    except Exception as error:
        message = str(error) or "The generator does not take these settings together."
        named = [name for name in values if name.removesuffix("s") in message]
        path = f"params.{max(named, key=len)}" if named else "params"
        raise ParamsRefused([FieldError(path, _sentence(message))]) from error


def _unknown(name: str, names: list[str]) -> str:
    """What to write instead of a name that is no setting."""
    if name in RESERVED:
        return f"{name!r} is set by the run itself; leave it out."
    known = [other for other in names if other not in RESERVED]
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    if close:
        return f"No such setting. Did you mean {' or '.join(map(repr, close))}?"
    return f"No such setting. There are: {', '.join(known) or 'none'}."


def _sentence(message: str) -> str:
    """First letter upper-case unless it begins a setting's name, full stop at the end."""
    text = " ".join(message.split())
    named = "_" in text.split(maxsplit=1)[0]
    return (text if named else text[:1].upper() + text[1:]) + (
        "" if text.endswith((".", "!", "?")) else "."
    )
