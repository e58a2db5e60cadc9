"""Packing of structured arrays into bytes, and back, exactly.

Used for every `packed` column. All fields are int64 or float64, so an array is a table of 8-byte
cells. Plain, it is stored as it lies in memory. Compact, each field stands by itself, integers as
differences to the one before, and all bytes are regrouped by significance before zlib, which takes
the regular parts (steps, times, exponents) to almost nothing.
"""

from __future__ import annotations

import zlib
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from webapp.metrics.arrays import Structured

PLAIN, COMPACT = b"\x02", b"\x03"
"""First byte of what is packed: its form."""
CELL = 8
ZLIB_LEVEL = 1  # the entropy sits in mantissas, where higher levels gain nothing


def pack(array: Structured, *, compact: bool) -> bytes:
    """The array as bytes; `compact` costs time and is for what will not change soon."""
    if not compact:
        return PLAIN + array.tobytes()
    fields = np.ascontiguousarray(_cells(array).T)
    integers = _integer_fields(array.dtype)
    if len(array):
        fields[integers, 1:] = np.diff(fields[integers])  # wraps around, hence exact
    planes = fields.reshape(-1).view(np.uint8).reshape(-1, CELL).T
    return COMPACT + zlib.compress(planes.tobytes(), ZLIB_LEVEL)


def unpack(packed: bytes | memoryview, dtype: np.dtype[Any], n: int) -> Structured:
    """The array of `n` entries that `pack` was given. Raises ValueError on other bytes."""
    data = memoryview(packed)
    if bytes(data[:1]) not in (PLAIN, COMPACT):
        raise ValueError(f"unknown form of packing {bytes(data[:1])!r}")
    compact = data[:1] == COMPACT
    body = zlib.decompress(data[1:]) if compact else bytes(data[1:])
    if len(body) != n * dtype.itemsize:
        raise ValueError(f"packed array has {len(body)} bytes, {n * dtype.itemsize} were expected")
    if not compact or n == 0:
        return np.frombuffer(body, dtype)
    planes = np.frombuffer(body, np.uint8).reshape(CELL, -1)
    fields = np.ascontiguousarray(planes.T).reshape(-1).view("<i8").reshape(-1, n)
    integers = _integer_fields(dtype)
    fields[integers] = np.cumsum(fields[integers], axis=1)
    return np.ascontiguousarray(fields.T).reshape(-1).view(dtype)


def _cells(array: Structured) -> NDArray[np.int64]:
    """Rows of 8-byte cells, floats as their bits."""
    width = array.dtype.itemsize // CELL
    cells: NDArray[np.int64] = np.ascontiguousarray(array).view("<i8").reshape(-1, width)
    return cells


@cache
def _integer_fields(dtype: np.dtype[Any]) -> NDArray[np.intp]:
    """Places of the integer fields of a type."""
    names = dtype.names or ()
    if any(dtype[name].itemsize != CELL for name in names):
        raise TypeError("only fields of 8 bytes can be packed")
    return np.array([i for i, name in enumerate(names) if dtype[name].kind == "i"], np.intp)
