"""From posted text to a document along the schema, and the changes of structure of its buttons.

Called by the launch page. Unknown names in the post are ignored; a field that was not posted is
left out, so that its default applies; a list without items is an empty list.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel

from webapp.ui.schema_form.kinds import FieldShape, Kind, member_of, shapes_of, tag_of
from webapp.ui.schema_form.scalars import to_value

MOST_ITEMS = 2000


def read_document(model: type[BaseModel], posted: Mapping[str, str]) -> dict[str, Any]:
    """The document that a posted form stands for; not validated."""
    return _Reader(posted).model(model, "")


class _Reader:
    """Walks the schema beside the posted names."""

    def __init__(self, posted: Mapping[str, str]) -> None:
        self.posted = posted

    def model(self, model: type[BaseModel], path: str) -> dict[str, Any]:
        """The values of one model that were posted."""
        found = {}
        for shape in shapes_of(model):
            place = f"{path}.{shape.name}" if path else shape.name
            if shape.kind is Kind.LIST or self._is_posted(place):
                found[shape.name] = self._value(shape, place)
        return found

    def _value(self, shape: FieldShape, path: str) -> Any:
        """The value of one field."""
        match shape.kind:
            case Kind.MODEL:
                return self.model(shape.models[0], path)
            case Kind.VARIANT:
                return self._member(shape, path)
            case Kind.LIST:
                return [self._member(shape, f"{path}.{i}") for i in self._indices(path)]
            case _:
                return to_value(shape, self.posted[path])

    def _member(self, shape: FieldShape, path: str) -> dict[str, Any]:
        """The values of a union's member."""
        tag = self.posted.get(f"{path}.type")
        member = member_of(shape.models, tag)
        return self.model(member, path) if member is not None else {"type": tag or ""}

    def _is_posted(self, path: str) -> bool:
        """Whether the field, or something below it, was posted."""
        return path in self.posted or any(name.startswith(f"{path}.") for name in self.posted)

    def _indices(self, path: str) -> Iterable[int]:
        """Indices of the items of a list that were posted, in order."""
        pattern = re.compile(rf"{re.escape(path)}\.([0-9]{{1,5}})\.")
        found = {int(m[1]) for name in self.posted if (m := pattern.match(name))}
        return sorted(found)[:MOST_ITEMS]


def change_structure(model: type[BaseModel], document: dict[str, Any], action: str) -> str:
    """Do what a button of the form asks, in place: `VERB:PATH` or `VERB:PATH:TYPE`.

    Verbs: add (an item of a type to a list), remove, up, down (an item of a list), become (another
    member of a union). Returns the path to show next; raises ValueError on anything else.
    """
    verb, _, rest = action.partition(":")
    path, _, tag = rest.partition(":")
    parent, key = _reach(document, path)
    if verb in {"add", "become"}:
        shape = _shape_at(model, path, document)
        if (shape.kind is Kind.LIST) is not (verb == "add"):
            raise ValueError(f"{path} takes no {verb}")
        if verb == "add":
            items = parent.setdefault(key, [])
            items.append(starting_value(shape, tag, names_in(document)))
            return f"{path}.{len(items) - 1}"
        taken = names_in(document) - names_in(parent.get(key))
        parent[key] = starting_value(shape, tag, taken)
        return path
    if verb not in {"remove", "up", "down"} or not isinstance(parent, list):
        raise ValueError(f"{action} is no change that the form knows")
    return _move(parent, key, verb, path)


def starting_value(shape: FieldShape, tag: str, taken: set[str]) -> dict[str, Any]:
    """A new item: its type and a name that nothing else has; defaults do the rest.

    For an item that only wraps another (`node`), the tag is that of the wrapped one.
    """
    member = member_of(shape.models, tag)
    if member is None:
        raise ValueError(f"there is no {tag} here")
    value: dict[str, Any] = {"type": tag_of(member)} if tag_of(member) else {}
    for field in shapes_of(member):
        if field.name == "name" and field.default:
            value["name"] = free_name(field.default, taken)
        elif field.name == "weight" and field.is_required:
            value["weight"] = 1.0
        elif field.kind is Kind.VARIANT and field.is_required:
            value[field.name] = starting_value(field, tag or tag_of(field.models[0]), taken)
        elif field.kind is Kind.LIST and field.is_required:
            value[field.name] = [starting_value(field, "", taken)]
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


def _move(items: list[Any], index: int, verb: str, path: str) -> str:
    """Remove an item, or change places with its neighbour."""
    parent_path = path.rpartition(".")[0]
    if not 0 <= index < len(items):
        raise ValueError(f"there is no item {index} in {parent_path}")
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
    return found, int(last) if isinstance(found, list) and last.isdecimal() else last


def _step(container: Any, part: str, path: str) -> Any:
    """One step down."""
    if isinstance(container, dict) and part in container:
        return container[part]
    if isinstance(container, list) and part.isdecimal() and int(part) < len(container):
        return container[int(part)]
    raise ValueError(f"there is no {path} in the form")


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
            raise ValueError(f"there is no {path} in the form")
        shape = next((s for s in shapes_of(current) if s.name == part), None)
        if shape is None:
            raise ValueError(f"there is no {path} in the form")
        value = value.get(part) if isinstance(value, dict) else None
        tag = value.get("type") if isinstance(value, dict) else None
        current = member_of(shape.models, tag) if shape.kind in {Kind.MODEL, Kind.VARIANT} else None
    if shape is None or not shape.models:
        raise ValueError(f"there is nothing to choose at {path}")
    return shape
