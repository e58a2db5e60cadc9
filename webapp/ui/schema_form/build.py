"""From a document, valid or not, to the controls that show it, with each error at its control.

Called by the launch page. The document is walked along the schema: what is missing shows its
default, what is wrong shows what was typed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from pydantic import BaseModel

from training_core.contract.field_errors import FieldError
from webapp.ui.schema_form.kinds import FieldShape, Kind, member_of, most_items, shapes_of, tag_of
from webapp.ui.schema_form.nodes import Choice, FieldNode, GroupNode, ListNode, VariantNode, walk
from webapp.ui.schema_form.scalars import to_text

Place = tuple[type[BaseModel], str]
"""A field of a model."""


@dataclass(frozen=True)
class FormLook:
    """What a page adds to the bare schema."""

    key_fields: frozenset[Place] = frozenset()
    """Fields that stand open at once."""
    labels: Mapping[Place, str | Promise] = field(default_factory=dict)
    """Better words than the field's name."""
    tag_labels: Mapping[str, str | Promise] = field(default_factory=dict)
    """Words for the members of unions."""
    choices: Mapping[Place, Sequence[Choice]] = field(default_factory=dict)
    """Texts that are chosen from a list after all."""
    suggestions: Mapping[Place, Sequence[str]] = field(default_factory=dict)
    """Values that a text field proposes."""
    templates: Mapping[Place, str] = field(default_factory=dict)
    """Templates of lists that are drawn in a way of their own."""


@dataclass(frozen=True)
class BuiltForm:
    """The controls, and the errors that no control could take."""

    root: GroupNode
    orphans: list[FieldError]


def build_form(
    model: type[BaseModel],
    document: Mapping[str, Any],
    errors: Sequence[FieldError] = (),
    *,
    look: FormLook | None = None,
    base: Mapping[str, Any] | None = None,
) -> BuiltForm:
    """Controls of a document. `base` is what changes are counted against."""
    builder = _Builder(look or FormLook(), base)
    root = builder.group(model, document, "", model.__name__, "")
    return BuiltForm(root, _attach(root, errors))


def label_of(name: str) -> str:
    """`max_new_tokens` as `Max new tokens`."""
    words = name.replace("_", " ")
    return words[:1].upper() + words[1:]


@dataclass
class _Builder:
    """Walks a schema and a document side by side."""

    look: FormLook
    base: Mapping[str, Any] | None

    def group(
        self, model: type[BaseModel], value: Any, path: str, label: str, help_text: str
    ) -> GroupNode:
        """The controls of one model."""
        values = value if isinstance(value, Mapping) else {}
        node = GroupNode(path, model, label, help_text)
        for shape in shapes_of(model):
            place = f"{path}.{shape.name}" if path else shape.name
            given = values.get(shape.name, shape.default)
            node.children.append(self._child(model, shape, given, place))
        return node

    def _child(self, model: type[BaseModel], shape: FieldShape, value: Any, path: str) -> Any:
        """The node of one field."""
        make: Callable[..., Any]
        match shape.kind:
            case Kind.MODEL:
                label = self._label(model, shape)
                return self.group(shape.models[0], value, path, label, shape.help)
            case Kind.VARIANT:
                make = self._variant
            case Kind.LIST:
                make = self._list
            case _:
                make = self._field
        return make(model, shape, value, path)

    def _field(self, model: type[BaseModel], shape: FieldShape, value: Any, path: str) -> FieldNode:
        """The control of a scalar."""
        place = (model, shape.name)
        text = to_text(shape, value)
        base_text = to_text(shape, self._base_value(path, shape.default))
        choices = [Choice(str(option), str(option)) for option in shape.options]
        kind = shape.kind
        if place in self.look.choices:
            kind, choices = Kind.CHOICE, list(self.look.choices[place])
        if kind is Kind.CHOICE and text not in {choice.value for choice in choices}:
            choices.append(Choice(text, text or _("choose one")))
        return FieldNode(
            path=path,
            label=self._label(model, shape),
            help=shape.help,
            kind=kind,
            text=text,
            default_text="" if shape.is_required else to_text(shape, shape.default),
            hint=shape.hint,
            choices=choices,
            suggestions=list(self.look.suggestions.get(place, ())),
            max_length=shape.max_length,
            is_nullable=shape.is_nullable,
            is_key=place in self.look.key_fields,
            is_changed=self.base is not None and text != base_text,
            base_text=base_text,
        )

    def _variant(
        self, model: type[BaseModel], shape: FieldShape, value: Any, path: str
    ) -> VariantNode:
        """The node of a union."""
        tag = value.get("type") if isinstance(value, Mapping) else None
        member = member_of(shape.models, tag)
        label = self._label(model, shape)
        group = None
        if member is not None:
            group = self.group(member, value, path, self._tag_label(member), _summary(member))
        node = VariantNode(path, label, shape.help, str(tag or ""), self._choices(shape), group)
        node.shows_label = len(shapes_of(model)) > 1
        return node

    def _list(self, model: type[BaseModel], shape: FieldShape, value: Any, path: str) -> ListNode:
        """The node of a list of models."""
        items = []
        given = value[: most_items(shape)] if isinstance(value, list | tuple) else []
        for index, item in enumerate(given):
            tag = item.get("type") if isinstance(item, Mapping) else None
            member = member_of(shape.models, tag) or shape.models[0]
            label, words = self._tag_label(member), _summary(member)
            items.append(self.group(member, item, f"{path}.{index}", label, words))
        node = ListNode(path, self._label(model, shape), shape.help, items, self._choices(shape))
        node.template = self.look.templates.get((model, shape.name), node.template)
        return node

    def _choices(self, shape: FieldShape) -> list[Choice]:
        """The members of a union as options; of items that only wrap a union, its members."""
        members = shape.models
        if len(members) == 1:
            wrapped = (s.models for s in shapes_of(members[0]) if s.kind is Kind.VARIANT)
            members = next(wrapped, members)
        return [Choice(tag_of(member), self._tag_label(member)) for member in members]

    def _label(self, model: type[BaseModel], shape: FieldShape) -> str:
        return str(self.look.labels.get((model, shape.name)) or _(label_of(shape.name)))

    def _tag_label(self, member: type[BaseModel]) -> str:
        tag = tag_of(member)
        return str(self.look.tag_labels.get(tag) or _(label_of(tag or member.__name__)))

    def _base_value(self, path: str, default: Any) -> Any:
        """What the form started from at a path."""
        found: Any = self.base
        for part in path.split("."):
            if isinstance(found, Mapping):
                found = found.get(part, default)
            elif isinstance(found, list | tuple) and part.isdecimal() and int(part) < len(found):
                found = found[int(part)]
            else:
                return default
        return found


def _summary(model: type[BaseModel]) -> str:
    """What a model is, in the reader's language."""
    words = summary_of(model)
    return _(words) if words else ""


def summary_of(model: type[BaseModel]) -> str:
    """The first line of a model's docstring."""
    return (model.__doc__ or "").strip().split("\n")[0]


def _attach(root: GroupNode, errors: Sequence[FieldError]) -> list[FieldError]:
    """Put each error at the control of its path or at the nearest above; return what is left."""
    places = {node.path: node for node in walk(root) if node.path}
    orphans = []
    for error in errors:
        path = error.path
        while path and path not in places:
            path = path.rpartition(".")[0]
        if not path:
            orphans.append(error)
            continue
        below = error.path[len(path) + 1 :]
        places[path].errors.append(f"{below}: {error.message}" if below else error.message)
    return orphans
