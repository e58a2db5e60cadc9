"""Types of parameters that many operations share, with the limits of the database.

A text with a NUL or a number that no column holds is refused here, at its name.
"""

from __future__ import annotations

from typing import Annotated

from ninja import Path, Query
from pydantic import AfterValidator, Field

MOST_ROWS = 200
LARGEST = 2_147_483_647
LARGEST_ID = 2**63 - 1


def without_nul(text: str) -> str:
    """The text. Raises ValueError for a NUL, which PostgreSQL cannot hold."""
    if "\0" in text:
        raise ValueError("holds a NUL character; take it out")
    return text


Text = Annotated[str, Field(max_length=200), AfterValidator(without_nul)]
"""Give a default to `Query` or `Form` as well: pydantic loses the one behind such a parameter."""

RunNumber = Annotated[
    int, Path(ge=1, le=LARGEST, description="Number of the run: 12 for #12.", examples=[12])
]
Limit = Annotated[
    int, Query(ge=1, le=MOST_ROWS, description="Most items of one answer.", examples=[50])
]
Cursor = Annotated[
    int | None,
    Query(
        ge=0, le=LARGEST_ID, description="`next_cursor` of the answer before; leave it out first."
    ),
]
