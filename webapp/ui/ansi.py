"""Terminal text as safe HTML: colours and bold become classes, everything else is escaped.

Called by the logs tab. What would surprise: a line that was overwritten by carriage returns, as
progress bars do, shows its last state only, and control characters are shown as symbols.
"""

from __future__ import annotations

import re

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

_SGR = re.compile(r"\x1b\[([0-9;:]{0,40})m")
_OTHER_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?"
    r"|[PX^_][^\x1b]*(?:\x1b\\)?|[ -/]*[0-~])?"
)
_CONTROLS = {code: chr(0x2400 + code) for code in range(32) if chr(code) not in "\t\n\x1b"}
_CONTROLS[0x7F] = "␡"
_COLOURS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")


def ansi_to_html(text: str) -> SafeString:
    """HTML of a piece of a log; each span is closed within it."""
    lines = [_last_state(line) for line in text.split("\n")]
    return mark_safe(_coloured("\n".join(lines)))


def strip_ansi(text: str) -> str:
    """The text alone, for searching."""
    plain = _OTHER_ESCAPES.sub("", _SGR.sub("", text))
    return "\n".join(_last_state(line) for line in plain.split("\n"))


def _last_state(line: str) -> str:
    """What stands there after the last carriage return."""
    parts = [part for part in line.rstrip("\r").split("\r") if part]
    return parts[-1] if parts else ""


def _coloured(text: str) -> str:
    """Escaped text with spans for colours."""
    found: list[str] = []
    classes: set[str] = set()
    start = 0
    for match in _SGR.finditer(text):
        found.append(_span(text[start : match.start()], classes))
        classes = _after(match[1], classes)
        start = match.end()
    found.append(_span(text[start:], classes))
    return "".join(found)


def _span(text: str, classes: set[str]) -> str:
    """One stretch of equal looks."""
    plain = escape(_OTHER_ESCAPES.sub("", text).translate(_CONTROLS))
    if not plain or not classes:
        return str(plain)
    return f'<span class="{" ".join(sorted(classes))}">{plain}</span>'


def _after(codes: str, classes: set[str]) -> set[str]:
    """The looks after one SGR sequence; unknown codes change nothing."""
    now = set(classes)
    for code in codes.replace(":", ";").split(";") or ["0"]:
        number = int(code) if code.isdecimal() else 0
        match number:
            case 0:
                now = set()
            case 1:
                now.add("ansi-bold")
            case 2:
                now.add("ansi-dim")
            case 22:
                now -= {"ansi-bold", "ansi-dim"}
            case 39:
                now = {name for name in now if name in {"ansi-bold", "ansi-dim"}}
            case _ if 30 <= number <= 37 or 90 <= number <= 97:
                now = {name for name in now if name in {"ansi-bold", "ansi-dim"}}
                now.add(f"ansi-{_COLOURS[number % 10]}")
    return now
