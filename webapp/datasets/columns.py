"""Which column names a file may have: few, short, and of characters that can be stored.

Called by `csv_rows.read_header` and `layout.detect` before anything else looks at the names, since
every name may later stand in a form, in an error and in the database.
"""

from __future__ import annotations

from collections.abc import Iterable

from django.utils.translation import gettext_noop as _

from webapp.datasets.rows import FileError, text_fault
from webapp.datasets.sentences import Sentence

MOST_COLUMNS = 1000
LONGEST_COLUMN = 200
SHOWN = 40  # characters of a refused name


def check_columns(names: Iterable[str]) -> list[str]:
    """The names as a list, read no further than the first that is refused. Raises FileError."""
    checked: dict[str, None] = {}
    for position, name in enumerate(names, start=1):
        if position > MOST_COLUMNS:
            text = _(
                "The file has more than %(most)s columns; leave out those that hold neither a "
                "prompt nor an answer."
            )
            raise FileError(Sentence(text, most=f"{MOST_COLUMNS:,}"))
        if problem := _fault(position, name):
            raise FileError(problem)
        if name in checked:
            raise FileError(
                Sentence(_("Two columns are named %(name)s; rename one."), name=repr(name))
            )
        checked[name] = None
    return list(checked)


def _fault(position: int, name: str) -> str:
    """What is wrong with a column's name; empty when nothing is."""
    shown = repr(name[:SHOWN])
    if len(name) > LONGEST_COLUMN:
        return Sentence(
            _(
                "The name of column %(position)s, %(name)s, has %(length)s characters; at most "
                "%(most)s are allowed."
            ),
            position=position,
            name=shown,
            length=f"{len(name):,}",
            most=LONGEST_COLUMN,
        )
    if fault := text_fault(name):
        return Sentence(
            _("The name of column %(position)s, %(name)s, cannot be stored. %(why)s"),
            position=position,
            name=shown,
            why=fault[1],
        )
    return ""
