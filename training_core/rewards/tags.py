"""Tags such as `<answer>` in a completion, found by a linear scan instead of a regular expression.

Used by the correctness and format leaves. Names are matched exactly: `<Answer>` is plain text, and
so is `<answer >`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple


class Tag(NamedTuple):
    """One opening or closing tag."""

    name: str
    closing: bool
    start: int
    """Position of its `<`."""
    end: int
    """Position after its `>`."""

    @property
    def text(self) -> str:
        """How it is written."""
        return f"</{self.name}>" if self.closing else f"<{self.name}>"


def find_tags(text: str, names: Sequence[str]) -> Iterator[Tag]:
    """Yield the tags of these names from left to right."""
    longest = max(len(name) for name in names) + 2
    at = text.find("<")
    while at >= 0:
        end = text.find(">", at + 1, at + 1 + longest)
        if end >= 0:
            inner = text[at + 1 : end]
            closing = inner.startswith("/")
            name = inner[1:] if closing else inner
            if name in names:
                yield Tag(name, closing, at, end + 1)
        at = text.find("<", at + 1)


def closed_contents(text: str, name: str) -> list[str]:
    """Contents of each `<name>...</name>`, innermost where tags are opened twice.

    An opening tag without its closing one has no content, and neither has a stray closing tag.
    """
    contents: list[str] = []
    opened: Tag | None = None
    for tag in find_tags(text, (name,)):
        if not tag.closing:
            opened = tag
        elif opened is not None:
            contents.append(text[opened.end : tag.start])
            opened = None
    return contents
