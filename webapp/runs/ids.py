"""Ids of runs: UUID version 7, so that the primary key grows with time and stays dense on disk.

Called as the default of `Run.id`. Python 3.11 has no `uuid.uuid7` of its own.
"""

from __future__ import annotations

import os
import time
from uuid import UUID


def new_uuid7() -> UUID:
    """A fresh time-ordered UUID (RFC 9562): 48 bits of milliseconds, 74 random bits."""
    milliseconds = time.time_ns() // 1_000_000
    random_bits = int.from_bytes(os.urandom(10), "big")
    value = (milliseconds & ((1 << 48) - 1)) << 80
    value |= 0x7 << 76
    value |= (random_bits >> 68) << 64
    value |= 0b10 << 62
    value |= random_bits & ((1 << 62) - 1)
    return UUID(int=value)
