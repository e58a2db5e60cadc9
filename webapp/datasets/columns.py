"""Which column names a file may have: few, short, and of characters that can be stored.

Called by `csv_rows.read_header` and `layout.detect` before anything else looks at the names, since
every name may later stand in a form, in an error and in the database.
"""

from __future__ import annotations

from collections.abc import Iterable

from webapp.datasets.rows import FileError, text_fault

MOST_COLUMNS = 1000
LONGEST_COLUMN = 200
SHOWN = 40  # characters of a refused name


def check_columns(names: Iterable[str]) -> list[str]:
    """The names as a list, read no further than the first that is refused. Raises FileError."""
    checked: dict[str, None] = {}
    for position, name in enumerate(names, start=1):
        if position > MOST_COLUMNS:
            raise FileError(
                f"The file has more than {MOST_COLUMNS:,} columns; leave out those that hold "
                "neither a prompt nor an answer."
            )
        if problem := _fault(name):
            raise FileError(f"The name of column {position}, {name[:SHOWN]!r}, {problem}")
        if name in checked:
            raise FileError(f"Two columns are named {name!r}; rename one.")
        checked[name] = None
    return list(checked)


def _fault(name: str) -> str:
    """What is wrong with a name, as the end of a sentence; empty when nothing is."""
    if len(name) > LONGEST_COLUMN:
        return f"has {len(name):,} characters; at most {LONGEST_COLUMN} are allowed."
    if fault := text_fault(name):
        return f"cannot be stored. {fault[1]}"
    return ""
