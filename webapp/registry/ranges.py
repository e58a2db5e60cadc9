"""The Range header of a download (RFC 9110, section 14). Pure.

Called by the download view. One range is served; several at once, or a unit that is not bytes, are
answered with the whole, as the RFC allows.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_ONE_RANGE = re.compile(r"bytes\s*=\s*(\d{0,18})\s*-\s*(\d{0,18})", re.ASCII | re.IGNORECASE)


class Unsatisfiable(Exception):
    """The range begins beyond the end."""


class ByteRange(NamedTuple):
    """Bytes from `start` up to, not including, `stop`."""

    start: int
    stop: int


def read_range_header(value: str, size: int) -> ByteRange | None:
    """The one range that a header asks for; None for the whole. Raises Unsatisfiable."""
    match = _ONE_RANGE.fullmatch(value.strip())
    if match is None or match[1] == match[2] == "":
        return None
    if match[1] == "":  # the last N bytes
        length = int(match[2])
        if length == 0:
            raise Unsatisfiable
        return ByteRange(max(0, size - length), size)
    start = int(match[1])
    if match[2] and int(match[2]) < start:
        return None
    if start >= size:
        raise Unsatisfiable
    return ByteRange(start, min(size, int(match[2]) + 1) if match[2] else size)


def wanted_range(range_header: str, if_range: str, size: int, etag: str) -> ByteRange | None:
    """The same, but the whole for somebody whose part is of another content (If-Range)."""
    if if_range.strip() not in {"", etag}:
        return None
    return read_range_header(range_header, size)
