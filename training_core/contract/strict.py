"""The one pydantic base of every document that crosses a process border.

Used by specs, events, control commands and records. Frozen and closed (an unknown key is an error),
and a field's docstring is its description, so form help, API schema and docs share one sentence.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class StrictModel(BaseModel):
    """A frozen document that refuses unknown keys and non-finite numbers."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        use_attribute_docstrings=True,
        allow_inf_nan=False,
        str_strip_whitespace=False,
        protected_namespaces=(),
    )


class WireModel(BaseModel):
    """Like StrictModel, but numbers may be NaN or infinite; JSON carries them as strings.

    Metrics must survive divergence: ``NaN`` travels as ``"NaN"`` and comes back as a float.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        use_attribute_docstrings=True,
        ser_json_inf_nan="strings",
        protected_namespaces=(),
    )


class SpecFault(ValueError):
    """What a validator refuses, its values apart from its words, which may then be translated."""

    def __init__(self, at: str, words: str, **values: object) -> None:
        said = words.format(**values)
        super().__init__(f"{at}: {said}" if at else said)
        self.at = at
        """Field below the model in dotted form; empty for the model itself."""
        self.words = words
        self.values = values
