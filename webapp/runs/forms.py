"""The launch form: one document, shown as controls or as YAML, judged by one validator.

Called by the launch views. A document is what `RunSpec` is validated from; controls, YAML and,
later, the API all become one and get the same errors at the same paths.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

import yaml
from django.utils.translation import gettext as _
from pydantic import ValidationError

from training_core.contract.field_errors import FieldError, field_errors
from training_core.contract.spec import RunSpec
from training_core.contract.yaml_text import (
    ParsedYaml,
    YamlError,
    dump_yaml,
    parse_yaml_with_marks,
    spec_to_yaml,
)
from webapp.accounts.models import Project
from webapp.runs import preflight
from webapp.runs.form_look import SECTIONS, Section, launch_look
from webapp.runs.yaml_lines import find_line
from webapp.ui.schema_form.build import BuiltForm, build_form
from webapp.ui.schema_form.nodes import FieldNode, Node, walk
from webapp.ui.schema_form.read import change_structure, read_document

MOST_FAULTS = 100
_HALF_PAIR = re.compile("[\ud800-\udfff]")


class Checked(NamedTuple):
    """A document after validation."""

    spec: RunSpec | None
    """The spec; None when something is wrong with the document itself."""
    errors: list[FieldError]
    """Everything that is wrong, of the document or of the world it is to run in."""

    @property
    def is_launchable(self) -> bool:
        """Whether it may be launched."""
        return self.spec is not None and not self.errors


class YamlFault(NamedTuple):
    """An error with its line in the YAML text."""

    path: str
    message: str
    line: int | None


@dataclass
class LaunchForm:
    """What the launch page shows: a document with what is wrong with it."""

    document: dict[str, Any]
    base: Mapping[str, Any] | None = None
    """What changes are counted against: preset, parent, or nothing."""
    project: Project | None = None
    """Where it is to run; its datasets may be used."""
    checked: Checked = field(init=False)
    is_legible: bool = field(init=False)
    """Whether a page can show the document as it is."""

    def __post_init__(self) -> None:
        self.checked = check_document(self.document, self.project)
        given, self.document = self.document, legible(self.document)
        self.is_legible = given == self.document

    @classmethod
    def from_post(
        cls,
        posted: Mapping[str, str],
        base: Mapping[str, Any] | None,
        project: Project | None = None,
    ) -> LaunchForm:
        """The form that a browser sent."""
        return cls(read_document(RunSpec, posted), base, project)

    def change(self, action: str) -> str:
        """Add, remove, move or replace a part; returns the path to show. Raises ValueError."""
        shown = change_structure(RunSpec, self.document, action)
        self.checked = check_document(self.document, self.project)
        return shown

    def yaml(self) -> str:
        """The document as YAML; whole with all defaults when it is valid."""
        if self.checked.spec is not None:
            return spec_to_yaml(self.checked.spec)
        return dump_yaml(self.document)

    def build(self, errors: Sequence[FieldError] | None = None) -> BuiltForm:
        """The controls, with these errors or the document's own."""
        shown = self.checked.errors if errors is None else errors
        return build_form(
            RunSpec, self.document, shown, look=launch_look(self.project), base=self.base
        )


class ShownSection(NamedTuple):
    """A section with its controls."""

    section: Section
    nodes: list[Node]


def sections_of(form: BuiltForm) -> list[ShownSection]:
    """The controls by section."""
    by_name = {node.path: node for node in form.root.children}
    return [ShownSection(s, [by_name[name] for name in s.fields]) for s in SECTIONS]


def check_document(document: Mapping[str, Any], project: Project | None = None) -> Checked:
    """Validate a document: text that cannot be stored, the contract, then the world."""
    if faults := list(islice(_unstorable(document), MOST_FAULTS)):
        return Checked(None, faults)
    try:
        spec = RunSpec.model_validate(document)
    except ValidationError as error:
        return Checked(None, field_errors(error, _))
    return Checked(spec, preflight.check(spec, project))


def read_yaml(text: str) -> tuple[ParsedYaml | None, str]:
    """(what it says, fault) of a YAML text; nothing, and why, when it is not YAML."""
    try:
        return parse_yaml_with_marks(text), ""
    except YamlError as error:
        words = str(error).rstrip(".")
        return None, f"{words[:1].upper()}{words[1:]}."


def at_lines(node: yaml.Node | None, errors: Sequence[FieldError]) -> list[YamlFault]:
    """Errors with the lines of the YAML text that they belong to."""
    return [
        YamlFault(e.path, e.message, find_line(node, e.path) if node is not None else None)
        for e in errors
    ]


def fits_the_form(document: dict[str, Any]) -> bool:
    """Whether the controls can show the whole document: nothing of it would be lost."""
    try:
        built = build_form(RunSpec, document)
        posted = {node.path: node.text for node in _fields(built)}
        return _same_keys(document, read_document(RunSpec, posted))
    except (TypeError, ValueError, AttributeError):
        return False


def _fields(built: BuiltForm) -> Iterator[FieldNode]:
    """All controls of a form."""
    return (node for node in walk(built.root) if isinstance(node, FieldNode))


def _same_keys(given: Any, kept: Any) -> bool:
    """Whether every key and item of the one is in the other."""
    if isinstance(given, dict):
        return isinstance(kept, dict) and all(
            key in kept and _same_keys(value, kept[key]) for key, value in given.items()
        )
    if isinstance(given, list) and any(isinstance(item, dict | list) for item in given):
        return (
            isinstance(kept, list) and len(kept) == len(given) and all(map(_same_keys, given, kept))
        )
    return not isinstance(kept, dict)


def _unstorable(value: Any) -> Iterator[FieldError]:
    """Texts with NUL or half a surrogate pair: neither PostgreSQL nor a file can hold them.

    Paths are put together for faults alone: those of all values would be long work.
    """
    if isinstance(value, Mapping):
        for key, item in value.items():
            if isinstance(key, str):
                yield from _unstorable(key)
            yield from _below(legible(str(key)), item)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _below(str(index), item)
    elif isinstance(value, str):
        if "\0" in value:
            yield FieldError("", _("The text holds a NUL character; take it out."))
        elif legible(value) != value:
            words = _("The text holds half of a surrogate pair, which is no character.")
            yield FieldError("", words)


def _below(part: str, value: Any) -> Iterator[FieldError]:
    """The faults of a value, at paths that begin with `part`."""
    for path, message in _unstorable(value):
        yield FieldError(f"{part}.{path}" if path else part, message)


def legible(value: Any) -> Any:
    """The same with a sign in place of each half surrogate pair, which no page could show."""
    if isinstance(value, str):
        return value if value.isascii() else _HALF_PAIR.sub("\ufffd", value)
    if isinstance(value, dict):
        return {legible(key): legible(item) for key, item in value.items()}
    if isinstance(value, list):
        return [legible(item) for item in value]
    return value
