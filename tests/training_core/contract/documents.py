"""A whole spec as plain data, and changes at dotted paths."""

from __future__ import annotations

import copy
import json
from typing import Any

from training_core.contract.presets import TEACH_SMOLLM2_TO_ADD

DELETE = object()


def document() -> dict[str, Any]:
    """The first preset as JSON data."""
    loaded: dict[str, Any] = json.loads(TEACH_SMOLLM2_TO_ADD.spec.model_dump_json())
    return loaded


def changed(path: str, value: Any) -> dict[str, Any]:
    """The document with the value at a dotted path; DELETE takes the field out."""
    whole: Any = document()
    at = whole
    *heads, last = path.split(".")
    for head in heads:
        at = at[int(head)] if isinstance(at, list) else at[head]
    if value is DELETE:
        del at[last]
    elif isinstance(at, list):
        at[int(last)] = copy.deepcopy(value)
    else:
        at[last] = copy.deepcopy(value)
    result: dict[str, Any] = whole
    return result
