"""From the columns of a file to records: which column is what, a guess at it, and the record.

Called by the import, its preview and the mapping form. A record's id is a hash of its content; its
side is left at `train` here and set by `sides` when the whole file is known.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from django.utils.translation import gettext_noop as _

from training_core.contract.domains import DatasetRecord, Message
from webapp.datasets.layout import look_up
from webapp.datasets.rows import NumberText, Row, RowError, text_fault
from webapp.datasets.sentences import Sentence

ROLES = ("system", "user", "assistant")
PROMPT_NAMES = (
    "prompt messages question problem instruction input query task text user".split()  # noqa: SIM905
)
ANSWER_NAMES = (
    "answer",
    "ground_truth",
    "reward_model.ground_truth",
    "reference_answer",
    "expected_answer",
    "final_answer",
    "target",
    "label",
    "solution",
    "output",
    "response",
    "completion",
)
DEMONSTRATION_NAMES = ("demonstration", "completion", "response", "output", "solution", "rationale")


class Mapping(NamedTuple):
    """Which column is what."""

    prompt: str
    """Column of the prompt: a text, or a list of chat turns."""
    answer: str
    """Column of the right answer."""
    demonstration: str = ""
    """Column of a worked reply; empty for none."""
    held_out_percent: int = 20
    """Share of prompts kept for evaluation."""


def guess_mapping(columns: list[str]) -> Mapping:
    """The likeliest mapping by the names that the field uses; empty where nothing fits."""
    by_lower = {column.lower(): column for column in reversed(columns)}

    def first(names: tuple[str, ...] | list[str], taken: set[str]) -> str:
        found = (by_lower[name] for name in names if name in by_lower)
        return next((column for column in found if column not in taken), "")

    prompt = first(PROMPT_NAMES, set())
    answer = first(ANSWER_NAMES, {prompt})
    return Mapping(prompt, answer, first(DEMONSTRATION_NAMES, {prompt, answer}))


def guess_by_texts(mapping: Mapping, columns: list[str], rows: Sequence[Row]) -> Mapping:
    """Fill what the names left open from the first rows: prompts are long, answers short.

    Only columns that hold a text in every row are asked, and none that merely counts rows.
    """
    if not rows:
        return mapping
    texts = {column: [look_up(row.values, column) for row in rows] for column in columns}
    sizes = {
        column: sum(map(len, found)) / len(found)
        for column, found in texts.items()
        if column not in mapping[:3] and all(isinstance(t, str) and t.strip() for t in found)
    }
    sizes = {column: size for column, size in sizes.items() if not _counts(texts[column])}
    if not mapping.prompt and sizes:
        mapping = mapping._replace(prompt=max(sizes, key=lambda column: sizes[column]))
    rest = [column for column in sizes if column != mapping.prompt]
    if not mapping.answer and rest:
        mapping = mapping._replace(answer=min(rest, key=lambda column: sizes[column]))
    return mapping


def _counts(texts: Sequence[str]) -> bool:
    """Whether they are 0, 1, 2 or 7, 8, 9: the number of a row, no answer."""
    if len(texts) < 2 or not all(text.isascii() and text.isdecimal() for text in texts):
        return False
    numbers = [int(text[:18]) for text in texts]
    return all(after - before == 1 for before, after in itertools.pairwise(numbers))


def make_record(row: Row, mapping: Mapping) -> DatasetRecord | list[RowError]:
    """The record of a row, or everything that is wrong with the row."""
    errors: list[RowError] = []
    messages = _messages(row, mapping.prompt, errors)
    answer = _text(row, mapping.answer, errors)
    demonstration = None
    if mapping.demonstration and look_up(row.values, mapping.demonstration) not in (None, ""):
        demonstration = _text(row, mapping.demonstration, errors)
    if errors:
        return errors
    turns = [(turn.role, turn.content) for turn in messages]
    return DatasetRecord(
        record_id=content_id([turns, answer, demonstration]),
        messages=tuple(messages),
        answer=answer,
        demonstration=demonstration,
    )


def content_id(value: Any) -> str:
    """32 hex digits of the SHA-256 of a value's JSON."""
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:32]


def _text(row: Row, column: str, errors: list[RowError]) -> str:
    """A cell as text; numbers keep the spelling of the file."""
    value = look_up(row.values, column)
    code = text = message = ""
    if value is None:
        code, text = "missing", _("There is no %(column)s here.")
    elif not isinstance(value, str):
        code, text = "wrong_type", _says_kind(value)
    elif not value.strip():
        code, text = "empty", _("%(column)s is empty.")
    elif fault := text_fault(value):
        code, message = fault
    if code:
        said = message or Sentence(text, column=repr(column))
        errors.append(RowError(row.number, column, code, said))
        return ""
    return str(value)


def _messages(row: Row, column: str, errors: list[RowError]) -> list[Message]:
    """The prompt as chat turns: a text becomes one user turn."""
    value = look_up(row.values, column)
    if not isinstance(value, list):
        text = _text(row, column, errors)
        return [Message(role="user", content=text)]
    turns: list[Message] = []
    for position, turn in enumerate(value):
        if fault := _turn_fault(turn):
            name = f"{column}.{position}"
            errors.append(RowError(row.number, name, "bad_turn", fault))
            return []
        turns.append(Message(role=turn["role"], content=turn["content"]))
    if not turns or turns[-1].role != "user":
        text = _("%(column)s must end with a turn of the user.")
        message = Sentence(text, column=repr(column))
        errors.append(RowError(row.number, column, "last_turn", message))
    return turns


def _turn_fault(turn: Any) -> str:
    """What is wrong with one chat turn; empty when nothing is."""
    if not isinstance(turn, dict):
        text = _("A chat turn must be an object such as %(example)s.")
        return Sentence(text, example='{"role": "user", "content": "..."}')
    if turn.get("role") not in ROLES:
        text = _("The role of a chat turn must be one of %(roles)s.")
        return Sentence(text, roles=", ".join(ROLES))
    content = turn.get("content")
    if not isinstance(content, str) or isinstance(content, NumberText):
        return Sentence(_("The content of a chat turn must be a text."))
    fault = text_fault(content)
    return fault[1] if fault else ""


def _says_kind(value: object) -> str:
    """What to say of a value that is no text."""
    if isinstance(value, bool):
        return _("%(column)s is true or false; expected a text or a number.")
    if isinstance(value, list):
        return _("%(column)s is a list; expected a text or a number.")
    return _("%(column)s is a nested object; expected a text or a number.")
