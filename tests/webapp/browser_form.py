"""What a browser would send for a piece of HTML: successful controls, in document order.

Used by form tests, so that templates, not helper functions, are what is read back.
"""

from __future__ import annotations

from html.parser import HTMLParser


class _Controls(HTMLParser):
    """Collects names and values as the HTML standard's form submission does."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.sent: dict[str, str] = {}
        self._textarea: str | None = None
        self._text = ""
        self._select: str | None = None
        self._options: list[tuple[str, bool]] = []
        self._option_text: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        name = given.get("name")
        if tag == "input" and name:
            kind = given.get("type", "text")
            if kind == "checkbox":
                if "checked" in given:
                    self.sent[name] = given.get("value") or "on"
            elif kind in {"hidden", "text"}:
                self.sent[name] = _one_line(given.get("value") or "", kind or "text")
        elif tag == "textarea":
            self._textarea, self._text = name or "", ""
        elif tag == "select":
            self._select, self._options = name or "", []
        elif tag == "option" and self._select is not None:
            self._options.append((given.get("value") or "", "selected" in given))

    def handle_data(self, data: str) -> None:
        if self._textarea is not None:
            self._text += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea" and self._textarea is not None:
            text = self._text.removeprefix("\n")  # the parser drops one newline after the tag
            if self._textarea:
                self.sent[self._textarea] = text.replace("\n", "\r\n")
            self._textarea = None
        elif tag == "select" and self._select is not None:
            chosen = [value for value, is_selected in self._options if is_selected]
            if self._select and self._options:
                self.sent[self._select] = (chosen or [self._options[0][0]])[-1]
            self._select = None


def _one_line(value: str, kind: str) -> str:
    """Text fields have no line ends."""
    return value if kind == "hidden" else value.replace("\r", "").replace("\n", "")


def submitted(html: str) -> dict[str, str]:
    """Name to value; of several controls with one name the last one counts."""
    parser = _Controls()
    parser.feed(html)
    parser.close()
    return parser.sent
