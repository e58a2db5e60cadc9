"""How numbers and texts look in a terminal. Pure functions.

What would surprise: names and logs may hold anything, so control characters are taken out before
they reach a terminal; of a log's escape sequences only colours stay.
"""

from __future__ import annotations

import math
import re

MISSING = "–"
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)?")


def plain(text: str) -> str:
    """One line without control characters."""
    return _CONTROL.sub("", _SEQUENCE.sub("", text)).replace("\n", " ").replace("\t", " ")


def log_text(text: str, *, colours: bool) -> str:
    """A log's text: lines, tabs, and colours where they are wanted."""
    parts: list[str] = []
    place = 0
    for match in _COLOUR.finditer(text):
        parts += [_calm(text[place : match.start()]), match[0] if colours else ""]
        place = match.end()
    return "".join([*parts, _calm(text[place:])])


def _calm(text: str) -> str:
    """Without sequences and control characters; a carriage return ends a line."""
    text = _SEQUENCE.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    return _CONTROL.sub("", text)


def duration(seconds: float | None) -> str:
    """`1 h 04 min`, `3 min 20 s`, `12 s`."""
    if seconds is None or not math.isfinite(seconds):
        return MISSING
    whole = max(0, round(seconds))
    hours, rest = divmod(whole, 3600)
    minutes, left = divmod(rest, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {left:02d} s" if minutes else f"{left} s"


def number(value: float | str | None) -> str:
    """Four significant digits; NaN and infinities named."""
    if value is None:
        return MISSING
    if isinstance(value, str):
        return plain(value)
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return f"{value:,.4g}" if abs(value) < 1e6 else f"{value:,.0f}"


def size(count: float) -> str:
    """Bytes with a unit."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
