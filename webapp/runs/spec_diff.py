"""What differs between two specs, path by path. Used by the launch page and the config tab."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

MOST_CHANGES = 5000
"""Of a document that is no spec, which may be anything."""


class Change(NamedTuple):
    """One value that is not the same."""

    path: str
    before: Any
    """Value in the first document; `ABSENT` when it has none there."""
    after: Any
    """Value in the second one."""


class Absent:
    """Stands for "there is nothing here"."""

    def __str__(self) -> str:
        return "—"


ABSENT = Absent()


def diff_documents(before: Any, after: Any) -> list[Change]:
    """The changes in document order. Lists are compared place by place."""
    return list(islice(_changes(before, after, ""), MOST_CHANGES))


def _changes(before: Any, after: Any, path: str) -> Iterator[Change]:
    """The changes below a path."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        keys = [*before, *(key for key in after if key not in before)]
        pairs = [(str(key), before.get(key, ABSENT), after.get(key, ABSENT)) for key in keys]
    elif isinstance(before, list | tuple) and isinstance(after, list | tuple):
        if not _holds_structure(before) and not _holds_structure(after):
            if list(before) != list(after):
                yield Change(path, before, after)
            return
        size = max(len(before), len(after))
        pairs = [(str(i), _item(before, i), _item(after, i)) for i in range(size)]
    else:
        if not _equal(before, after):
            yield Change(path, before, after)
        return
    for key, old, new in pairs:
        yield from _changes(old, new, f"{path}.{key}" if path else key)


def _item(items: list[Any] | tuple[Any, ...], index: int) -> Any:
    return items[index] if index < len(items) else ABSENT


def _holds_structure(items: list[Any] | tuple[Any, ...]) -> bool:
    return any(isinstance(item, Mapping | list | tuple) for item in items)


def _equal(before: Any, after: Any) -> bool:
    """Equal as JSON: 1 and 1.0 are, 1 and true are not."""
    if isinstance(before, bool) is not isinstance(after, bool):
        return False
    return bool(before == after)
