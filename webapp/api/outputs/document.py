"""The base of every answer: closed, with each field's docstring as its description."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Document(BaseModel):
    """What an operation answers with, or takes."""

    model_config = ConfigDict(
        use_attribute_docstrings=True, extra="forbid", protected_namespaces=()
    )
