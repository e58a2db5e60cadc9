"""The controls of a form as data: what the templates in `templates/ui/form/` draw.

Built by `build`. Each node knows the template that draws it, so that recursion in templates is one
`include`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from pydantic import BaseModel

from webapp.ui.schema_form.kinds import Kind


class Choice(NamedTuple):
    """One option of a select, or one thing that can be added to a list."""

    value: str
    """What is posted."""
    label: str
    """What people read."""


@dataclass
class FieldNode:
    """One control."""

    path: str
    """Dotted path in the document; also its name in the form."""
    label: str
    help: str
    kind: Kind
    text: str
    """What it shows."""
    default_text: str
    hint: str = ""
    choices: list[Choice] = field(default_factory=list)
    suggestions: list[str] = field(default_factory=list)
    max_length: int | None = None
    is_nullable: bool = False
    is_key: bool = False
    """Whether it stands open at once."""
    is_changed: bool = False
    """Whether it differs from what the form started from."""
    base_text: str = ""
    """What the form started from."""
    errors: list[str] = field(default_factory=list)

    template: str = "ui/form/field.html"

    @property
    def id(self) -> str:
        """Its HTML id."""
        return f"field-{self.path}"

    @property
    def is_on(self) -> bool:
        """Whether a switch is on."""
        return self.text == "true"

    @property
    def rows(self) -> int:
        """Lines of a text box."""
        return min(12, max(2, self.text.count("\n") + 1 + len(self.text) // 90))


@dataclass
class GroupNode:
    """The controls of one model."""

    path: str
    model: type[BaseModel]
    label: str
    help: str
    children: list[Node] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    template: str = "ui/form/group.html"

    @property
    def tag(self) -> str:
        """Its member name in a union; empty when it is in none."""
        constant = next((f for f in self.own_fields if f.path.endswith("type")), None)
        return constant.text if constant is not None and constant.kind is Kind.CONSTANT else ""

    @property
    def own_fields(self) -> list[FieldNode]:
        """Controls of the model itself."""
        return [child for child in self.children if isinstance(child, FieldNode)]

    @property
    def constants(self) -> list[FieldNode]:
        """What is posted and not seen, nested models included."""
        return [f for group in self._flat() for f in group.own_fields if f.kind is Kind.CONSTANT]

    @property
    def key_fields(self) -> list[FieldNode]:
        """Controls that stand open, nested models included; text boxes last."""
        found = [f for group in self._flat() for f in group.own_fields if f.is_key]
        return sorted(found, key=lambda f: f.kind in {Kind.LONG_TEXT, Kind.SETTINGS})

    @property
    def rest(self) -> list[tuple[GroupNode, list[FieldNode]]]:
        """The other controls, by the model that they belong to."""
        found = []
        for group in self._flat():
            fields = [f for f in group.own_fields if not f.is_key and f.kind is not Kind.CONSTANT]
            if fields:
                found.append((group, fields))
        return found

    @property
    def rest_count(self) -> int:
        """How many controls are behind "all settings"."""
        return sum(len(fields) for _, fields in self.rest)

    @property
    def rest_changed(self) -> int:
        """How many of them differ from the start."""
        return sum(f.is_changed for _, fields in self.rest for f in fields)

    @property
    def messages(self) -> list[str]:
        """Errors of the model as a whole, nested models included."""
        return [message for group in self._flat() for message in group.errors]

    @property
    def rest_is_wrong(self) -> bool:
        """Whether one of them has an error, so that they must be seen."""
        return any(f.errors for _, fields in self.rest for f in fields)

    @property
    def branches(self) -> list[VariantNode | ListNode]:
        """Lists and unions below, nested models included."""
        return [
            child
            for group in self._flat()
            for child in group.children
            if isinstance(child, VariantNode | ListNode)
        ]

    def field(self, name: str) -> FieldNode | None:
        """The model's own control of that name."""
        return next((f for f in self.own_fields if f.path.rpartition(".")[2] == name), None)

    @property
    def title(self) -> str:
        """What the item calls itself; an item that wraps a union is called like what is inside."""
        named = self.field("name")
        if named is not None and named.text:
            return named.text
        inside = next((c.group for c in self.children if isinstance(c, VariantNode)), None)
        return inside.title if inside is not None else self.label

    def _flat(self) -> Iterator[GroupNode]:
        """This group and the models nested in it."""
        yield self
        for child in self.children:
            if isinstance(child, GroupNode):
                yield from child._flat()


@dataclass
class VariantNode:
    """One of several models."""

    path: str
    label: str
    help: str
    chosen: str
    choices: list[Choice]
    group: GroupNode | None
    shows_label: bool = True
    """Whether its label is seen: not where it is all that there is."""
    errors: list[str] = field(default_factory=list)
    template: str = "ui/form/variant.html"


@dataclass
class ListNode:
    """A list of models."""

    path: str
    label: str
    help: str
    items: list[GroupNode]
    choices: list[Choice]
    errors: list[str] = field(default_factory=list)
    template: str = "ui/form/list.html"

    @property
    def last_index(self) -> int:
        """Index of the last item."""
        return len(self.items) - 1


Node = FieldNode | GroupNode | VariantNode | ListNode


def walk(node: Node) -> Iterator[Node]:
    """A node and all nodes below it."""
    yield node
    match node:
        case GroupNode():
            below: list[Node] = list(node.children)
        case ListNode():
            below = list(node.items)
        case VariantNode() if node.group is not None:
            below = [node.group]
        case _:
            below = []
    for child in below:
        yield from walk(child)
