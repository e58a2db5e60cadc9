"""What a field of a pydantic model is, seen as a form control.

Used by `build` (document to controls) and `read` (posted text to document), so that the two agree.
Supports what RunSpec uses: scalars, literals, optionals, tuples of words, a mapping of free
settings, nested models, tuples of models and discriminated unions of models.
"""

from __future__ import annotations

import re
import types
from collections.abc import Iterator
from enum import StrEnum
from functools import lru_cache
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt, MaxLen
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from pydantic import BaseModel
from pydantic.fields import FieldInfo

LONG_TEXT_FROM = 1000  # characters from which a text gets a box of several lines
MOST_ITEMS = 1000  # of a list without a limit of its own
UNSAID_FROM = 1_000_000  # upper bounds from here on are no help to anybody


class Kind(StrEnum):
    """Sort of control."""

    TEXT = "text"
    LONG_TEXT = "long_text"
    INTEGER = "integer"
    NUMBER = "number"
    SWITCH = "switch"
    CHOICE = "choice"
    CONSTANT = "constant"
    WORDS = "words"
    SETTINGS = "settings"
    MODEL = "model"
    VARIANT = "variant"
    LIST = "list"


class FieldShape(NamedTuple):
    """One field of a model, with everything that its control needs to know."""

    name: str
    """Name in the model."""
    kind: Kind
    """Sort of control."""
    help: str
    """The field's docstring."""
    models: tuple[type[BaseModel], ...] = ()
    """Model of a MODEL; members of a VARIANT; possible items of a LIST."""
    options: tuple[Any, ...] = ()
    """Values of a CHOICE or CONSTANT."""
    is_nullable: bool = False
    """Whether empty means null."""
    is_required: bool = False
    """Whether there is no default."""
    default: Any = None
    """Default as JSON; None when required."""
    hint: str = ""
    """Range in words."""
    max_length: int | None = None
    """Most characters of a text, or items of a list."""


def most_items(shape: FieldShape) -> int:
    """Items of a list that a form reads and draws: one too many, so that validation says so."""
    return (MOST_ITEMS if shape.max_length is None else shape.max_length) + 1


def shapes_of(model: type[BaseModel]) -> tuple[FieldShape, ...]:
    """The fields of a model in their order, with help in the reader's language."""
    return _shapes_of(model, get_language())


@lru_cache(maxsize=256)
def _shapes_of(model: type[BaseModel], _language: str | None) -> tuple[FieldShape, ...]:
    return tuple(_shape(name, info) for name, info in model.model_fields.items())


def tag_of(model: type[BaseModel]) -> str:
    """The value of `type` that stands for a member of a union; empty when it has none."""
    info = model.model_fields.get("type")
    return str(get_args(info.annotation)[0]) if info is not None else ""


def member_of(models: tuple[type[BaseModel], ...], tag: object) -> type[BaseModel] | None:
    """The member of a union that a tag stands for; the only model when there is one."""
    if len(models) == 1:
        return models[0]
    return next((model for model in models if tag_of(model) == tag), None)


def _shape(name: str, info: FieldInfo) -> FieldShape:
    """The shape of one field."""
    annotation, metadata = _unwrap(info.annotation, list(info.metadata))
    nullable = False
    if types.NoneType in get_args(annotation) and _is_union(annotation):
        nullable = True
        annotation, metadata = _unwrap(_without_none(annotation), metadata)
    kind, models, options = _kind(annotation)
    longest = next((m.max_length for m in metadata if isinstance(m, MaxLen)), None)
    if kind is Kind.TEXT and (longest is None or longest >= LONG_TEXT_FROM):
        kind = Kind.LONG_TEXT
    return FieldShape(
        name=name,
        kind=kind,
        help=_(info.description) if info.description else "",
        models=models,
        options=options,
        is_nullable=nullable,
        is_required=info.is_required(),
        default=None
        if info.is_required()
        else _as_json(info.get_default(call_default_factory=True)),
        hint=_hint(kind, metadata, nullable),
        max_length=longest if kind in {Kind.TEXT, Kind.LONG_TEXT, Kind.LIST} else None,
    )


def _unwrap(annotation: Any, metadata: list[Any]) -> tuple[Any, list[Any]]:
    """An annotation without Annotated, and all constraints that were found."""
    while get_origin(annotation) is Annotated:
        annotation, *more = get_args(annotation)
        for item in more:
            metadata.extend(item.metadata if isinstance(item, FieldInfo) else [item])
    return annotation, metadata


def _is_union(annotation: Any) -> bool:
    return get_origin(annotation) in {Union, types.UnionType}


def _without_none(annotation: Any) -> Any:
    """The one member of an optional that is not None."""
    return next(arg for arg in get_args(annotation) if arg is not types.NoneType)


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models of a union, nested unions included."""
    annotation, _ = _unwrap(annotation, [])
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    elif _is_union(annotation):
        for member in get_args(annotation):
            yield from _models_in(member)


def _kind(annotation: Any) -> tuple[Kind, tuple[type[BaseModel], ...], tuple[Any, ...]]:
    """(kind, models, options) of a bare annotation."""
    scalar = {bool: Kind.SWITCH, int: Kind.INTEGER, float: Kind.NUMBER, str: Kind.TEXT}
    if annotation in scalar:
        return scalar[annotation], (), ()
    origin = get_origin(annotation)
    if origin is Literal:
        options = get_args(annotation)
        return (Kind.CHOICE if len(options) > 1 else Kind.CONSTANT), (), options
    if origin is tuple:
        models = tuple(_models_in(get_args(annotation)[0]))
        return (Kind.LIST if models else Kind.WORDS), models, ()
    if origin is dict:
        return Kind.SETTINGS, (), ()
    models = tuple(_models_in(annotation))
    if not models:
        raise TypeError(f"the form has no control for {annotation!r}")
    return (Kind.VARIANT if len(models) > 1 else Kind.MODEL), models, ()


def _as_json(value: Any) -> Any:
    """A default in the form in which documents hold it."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, tuple):
        return [_as_json(item) for item in value]
    return value


def _hint(kind: Kind, metadata: list[Any], nullable: bool) -> str:
    """A range in words, such as `0 to 1` or `above 0`."""
    if kind not in {Kind.INTEGER, Kind.NUMBER, Kind.WORDS}:
        return ""
    low = high = ""
    is_open = any(isinstance(item, Gt) for item in metadata)
    for item in metadata:
        match item:
            case Ge(ge=bound):
                low = _plain(bound)
            case Gt(gt=bound):
                low = _("above {bound}").format(bound=_plain(bound))
            case Le(le=bound) if _is_worth_saying(bound):
                high = _plain(bound)
            case Lt(lt=bound) if _is_worth_saying(bound):
                high = _("below {bound}").format(bound=_plain(bound))
    return _(", ").join(
        part
        for part in (_range(low, high, is_open), _("empty for none") if nullable else "")
        if part
    )


def _range(low: str, high: str, is_open: bool) -> str:
    """Two bounds, of which either may be missing; `is_open`: the lower one says "above" itself."""
    if low and high:
        return _("{low} to {high}").format(low=low, high=high)
    if low:
        return low if is_open else _("{low} or more").format(low=low)
    return _("up to {high}").format(high=high) if high else ""


def _is_worth_saying(bound: Any) -> bool:
    """Whether an upper bound helps anybody."""
    return bool(bound < UNSAID_FROM)


def _plain(bound: Any) -> str:
    """A bound as people write it."""
    if isinstance(bound, int) or float(bound).is_integer():
        return f"{int(bound):,}"
    return re.sub(r"e([+-])0+", r"e\1", f"{bound:g}")
