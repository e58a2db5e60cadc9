"""The key that makes a double click one row, bound to what was asked.

Called by `runs.services` and `glass.services`. A page that comes back by the browser's Back button
still has its old key: another wish sent with it must not get the row of the first one.
"""

from __future__ import annotations

import hashlib
import json


def bind_key(key: str, *wish: object) -> str:
    """The key with a digest of the wish, 17 characters longer; none stays none."""
    if not key:
        return ""
    document = json.dumps(wish, sort_keys=True, default=str)
    return f"{key}-{hashlib.sha256(document.encode()).hexdigest()[:16]}"
