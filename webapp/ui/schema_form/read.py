"""From posted text to a document along the schema, and the changes of structure of its buttons.

Called by the launch page. Unknown names in the post are ignored; a field that was not posted is
left out, so that its default applies; a list without items is an empty list.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from django.utils.translation import gettext
from pydantic import BaseModel

from webapp.ui.schema_form.kinds import FieldShape, Kind, member_of, most_items, shapes_of, tag_of
from webapp.ui.schema_form.scalars import to_value

MOST_LEVELS = 64
"""Parts of a name: rewards are read 20 deep, beyond what the contract takes and templates draw."""
MOST_NAME_CHARS = 1000
MOST_SETTINGS_CHARS = 100_000
"""Of YAML in all boxes of settings together; parsing is slow. What is beyond stays text."""
_INDEX = re.compile(r"0|[1-9][0-9]{0,4}")


def read_document(model: type[BaseModel], posted: Mapping[str, str]) -> dict[str, Any]:
    """The document that a posted form stands for; not validated."""
    return _Reader().model(model, _places(posted))


@dataclass
class _Place:
    """One place of the form: the text that was posted for it, and the places below it."""

    text: str | None = None
    below: dict[str, _Place] = field(default_factory=dict)


def _places(posted: Mapping[str, str]) -> _Place:
    """The posted names as a tree, made once, so that reading costs as much as the post is long."""
    root = _Place()
    for name, text in posted.items():
        if len(name) > MOST_NAME_CHARS or name.count(".") >= MOST_LEVELS:
            continue
        place = root
        for part in name.split("."):
            place = place.below.setdefault(part, _Place())
        place.text = text
    return root


@dataclass
class _Reader:
    """Walks the schema beside the tree of posted names."""

    settings_chars: int = MOST_SETTINGS_CHARS
    """What may still be parsed as YAML."""

    def model(self, model: type[BaseModel], place: _Place) -> dict[str, Any]:
        """The values of one model that were posted."""
        found: dict[str, Any] = {}
        for shape in shapes_of(model):
            below = place.below.get(shape.name)
            if shape.kind is Kind.LIST:
                found[shape.name] = [self._member(shape, item) for item in _items(shape, below)]
            elif below is None:
                continue
            elif shape.kind is Kind.MODEL:
                found[shape.name] = self.model(shape.models[0], below)
            elif shape.kind is Kind.VARIANT:
                found[shape.name] = self._member(shape, below)
            elif below.text is not None:
                found[shape.name] = self._scalar(shape, below.text)
        return found

    def _member(self, shape: FieldShape, place: _Place) -> dict[str, Any]:
        """The values of a union's member."""
        tag = place.below["type"].text if "type" in place.below else None
        member = member_of(shape.models, tag)
        return self.model(member, place) if member is not None else {"type": tag or ""}

    def _scalar(self, shape: FieldShape, text: str) -> Any:
        """The value of one control."""
        if shape.kind is Kind.SETTINGS:
            self.settings_chars -= len(text)
            if self.settings_chars < 0:
                return text
        return to_value(shape, text)


def _items(shape: FieldShape, place: _Place | None) -> list[_Place]:
    """The items of a list that were posted, in order."""
    below = place.below if place is not None else {}
    found = sorted(int(part) for part in below if _INDEX.fullmatch(part))
    items = (below[str(index)] for index in found)
    return list(islice((item for item in items if item.below), most_items(shape)))


def change_structure(model: type[BaseModel], document: dict[str, Any], action: str) -> str:
    """Do what a button of the form asks, in place: `VERB:PATH` or `VERB:PATH:TYPE`.

    Verbs: add (an item of a type to a list), remove, up, down (an item of a list), become (another
    member of a union). Returns the path to show next; raises ValueError on anything else.
    """
    verb, _, rest = action.partition(":")
    path, _, tag = rest.partition(":")
    if len(action) > MOST_NAME_CHARS:
        raise ValueError(gettext("that is no change that the form knows"))
    parent, key = _reach(document, path)
    if verb in {"add", "become"}:
        shape = _shape_at(model, path, document)
        if (shape.kind is Kind.LIST) is not (verb == "add") or not isinstance(parent, dict):
            words = gettext("%(path)s takes no %(verb)s")
            raise ValueError(words % {"path": path, "verb": verb})
        if verb == "add":
            items = parent.setdefault(key, [])
            items.append(starting_value(shape, tag, names_in(document)))
            return f"{path}.{len(items) - 1}"
        taken = names_in(document) - names_in(parent.get(key))
        parent[key] = starting_value(shape, tag, taken)
        return path
    if verb not in {"remove", "up", "down"} or not isinstance(parent, list):
        words = gettext("%(action)s is no change that the form knows")
        raise ValueError(words % {"action": action})
    return _move(parent, key, verb, path)


def starting_value(shape: FieldShape, tag: str, taken: set[str]) -> dict[str, Any]:
    """A new item: its type and a name that nothing else has; defaults do the rest.

    For an item that only wraps another (`node`), the tag is that of the wrapped one.
    """
    member = member_of(shape.models, tag)
    if member is None:
        raise ValueError(gettext("there is no %(name)s here") % {"name": tag})
    value: dict[str, Any] = {"type": tag_of(member)} if tag_of(member) else {}
    for inner in shapes_of(member):
        if inner.name == "name" and inner.default:
            value["name"] = free_name(inner.default, taken)
        elif inner.name == "weight" and inner.is_required:
            value["weight"] = 1.0
        elif inner.kind is Kind.VARIANT and inner.is_required:
            value[inner.name] = starting_value(inner, tag or tag_of(inner.models[0]), taken)
        elif inner.kind is Kind.LIST and inner.is_required:
            value[inner.name] = [starting_value(inner, "", taken)]
    return value


def free_name(name: str, taken: set[str]) -> str:
    """The name, or the name with the first number that makes it free."""
    tries = (name, *(f"{name}-{n}" for n in range(2, len(taken) + 3)))
    return next(candidate for candidate in tries if candidate not in taken)


def names_in(value: Any) -> set[str]:
    """Every `name` in a document."""
    if isinstance(value, list):
        return set().union(*(names_in(item) for item in value))
    if not isinstance(value, dict):
        return set()
    own = {value["name"]} if isinstance(value.get("name"), str) else set()
    return own.union(*(names_in(item) for item in value.values()))


def _move(items: list[Any], index: int | str, verb: str, path: str) -> str:
    """Remove an item, or change places with its neighbour."""
    parent_path, _, last = path.rpartition(".")
    if not isinstance(index, int) or not 0 <= index < len(items):
        words = gettext("there is no item %(item)s in %(path)s")
        raise ValueError(words % {"item": last, "path": parent_path})
    if verb == "remove":
        del items[index]
        return parent_path
    other = index + (1 if verb == "down" else -1)
    if 0 <= other < len(items):
        items[index], items[other] = items[other], items[index]
    return f"{parent_path}.{max(0, min(other, len(items) - 1))}"


def _reach(document: dict[str, Any], path: str) -> tuple[Any, Any]:
    """(container, key) of a path. Raises ValueError when there is no such place."""
    found: Any = document
    *way, last = path.split(".")
    for part in way:
        found = _step(found, part, path)
    return found, int(last) if isinstance(found, list) and _INDEX.fullmatch(last) else last


def _step(container: Any, part: str, path: str) -> Any:
    """One step down."""
    if isinstance(container, dict) and part in container:
        return container[part]
    if isinstance(container, list) and _INDEX.fullmatch(part) and int(part) < len(container):
        return container[int(part)]
    raise _nothing_at(path)


def _nothing_at(path: str) -> ValueError:
    """The refusal of a path that leads nowhere."""
    return ValueError(gettext("there is no %(path)s in the form") % {"path": path})


def _shape_at(model: type[BaseModel], path: str, document: dict[str, Any]) -> FieldShape:
    """The shape of the list or union at a path."""
    shape: FieldShape | None = None
    value: Any = document
    current: type[BaseModel] | None = model
    for part in path.split("."):
        if part.isdecimal() and shape is not None:
            value = _step(value, part, path)
            current = member_of(shape.models, value.get("type"))
            continue
        if current is None:
            raise _nothing_at(path)
        shape = next((s for s in shapes_of(current) if s.name == part), None)
        if shape is None:
            raise _nothing_at(path)
        value = value.get(part) if isinstance(value, dict) else None
        tag = value.get("type") if isinstance(value, dict) else None
        current = member_of(shape.models, tag) if shape.kind in {Kind.MODEL, Kind.VARIANT} else None
    if shape is None or not shape.models:
        raise ValueError(gettext("there is nothing to choose at %(path)s") % {"path": path})
    return shape
