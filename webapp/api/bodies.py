"""Read a RunSpec from a request: JSON or YAML, with the errors of the launch form.

Called by the launch operations. The document is judged by `webapp.runs.forms.check_document`, as
form and YAML are, so all of them say the same about the same fault; YAML gets its lines besides.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import yaml
from django.http import HttpRequest

from training_core.contract.field_errors import FieldError
from training_core.contract.spec import RunSpec
from webapp.accounts.models import Project
from webapp.api.problems import Fault, Problem, bad_fields
from webapp.runs.forms import at_lines, check_document, read_yaml

JSON_TYPES = frozenset({"application/json", ""})
YAML_TYPES = frozenset({"application/yaml", "application/x-yaml", "text/yaml"})


class SentDocument(NamedTuple):
    """What a request holds."""

    document: dict[str, Any]
    node: yaml.Node | None
    """Where it stands in the YAML text, where YAML was sent."""


def read_document(request: HttpRequest) -> SentDocument:
    """The body as a mapping. Raises Problem 400, 415 or 422."""
    kind = (request.content_type or "").lower()
    if kind in YAML_TYPES:
        return read_yaml_text(_decoded(request.body))
    if kind in JSON_TYPES:
        return SentDocument(read_json(request.body), None)
    raise Problem(415, f"Send application/json or application/yaml, not {kind[:80]}.")


def read_json(body: bytes) -> dict[str, Any]:
    """A JSON object. Raises Problem 400 or 422."""
    try:
        document = json.loads(body, object_pairs_hook=_once, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise Problem(
            400, f"The body is not JSON: {error.msg} (line {error.lineno}, column {error.colno})."
        ) from error
    except (ValueError, RecursionError) as error:
        words = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise Problem(400, f"The body is not JSON that we read: {words}.") from error
    if not isinstance(document, dict):
        raise bad_fields([FieldError("", "Expected an object of fields.")])
    return document


def checked_spec(sent: SentDocument, project: Project) -> RunSpec:
    """The spec that a document is, to run in the project, whose datasets it may use.

    Raises Problem 422 with everything that is wrong with it.
    """
    checked = check_document(sent.document, project)
    if checked.errors or checked.spec is None:
        raise bad_fields(with_lines(sent, checked.errors))
    return checked.spec


def with_lines(sent: SentDocument, errors: list[FieldError]) -> list[FieldError | Fault]:
    """The errors, with the lines of the YAML text where there is one."""
    if sent.node is None:
        return list(errors)
    return [Fault(fault.path, fault.message, fault.line) for fault in at_lines(sent.node, errors)]


def read_yaml_text(text: str) -> SentDocument:
    """A YAML mapping. Raises Problem 400."""
    parsed, fault = read_yaml(text.replace("\r\n", "\n"))
    if parsed is None:
        raise Problem(400, fault, [FieldError("", fault)])
    return SentDocument(parsed.document, parsed.node)


def _decoded(body: bytes) -> str:
    """The text of a body. Raises Problem 400."""
    try:
        return body.decode()
    except UnicodeDecodeError:
        raise Problem(400, "The YAML text is not UTF-8.") from None


def _once(pairs: list[tuple[str, Any]]) -> Mapping[str, Any]:
    """An object whose keys stand once."""
    document = dict(pairs)
    if len(document) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        doubled = next(key for key, count in counts.items() if count > 1)
        raise ValueError(f"the key {doubled[:80]!r} stands twice")
    return document


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is no JSON number")
